package sshtest

import (
	"context"
	"sync"
	"testing"

	"wmco/internal/test/sshtest/sshd"
)

// Shared are the programs of the tests of a package, built for the first one that needs them.
type Shared struct {
	sshd.Programs
	// Node and Command are wmco-node and wmco.
	Node, Command string
	once          sync.Once
	err           error
}

// Build builds them once.
func (s *Shared) Build(t testing.TB) {
	t.Helper()
	s.once.Do(func() {
		ctx := context.Background()
		if s.Programs, s.err = sshd.Build(ctx); s.err != nil {
			return
		}
		if s.Node, s.err = s.Go(ctx, "wmco/cmd/wmco-node"); s.err == nil {
			s.Command, s.err = s.Go(ctx, "wmco/cmd/wmco")
		}
	})
	must(t, s.err)
}

// Remove removes what was built.
func (s *Shared) Remove() {
	if s.Node != "" {
		_ = s.Programs.Remove() // a folder for temporary files
	}
}
