package hosts

import (
	"context"
	"errors"
	"testing"

	"wmco/applier/remote"
)

// lacking is a host without the node agent.
type lacking struct{}

func (lacking) Connect(context.Context, remote.Target) error { return nil }

func (lacking) Run(_ context.Context, t remote.Target, c remote.Command) error {
	return &remote.CommandError{Target: t, Command: c.Name, Status: 1}
}

func (lacking) Transfer(context.Context, remote.Target, func(remote.Files) error) error {
	return remote.ErrNoSFTP
}

func (lacking) Close() error { return nil }

// TestNothingIsCopiedToAClaimedAddress: the host there may be any.
func TestNothingIsCopiedToAClaimedAddress(t *testing.T) {
	program, err := remote.FileProgram("hosts.go") // it is never sent
	if err != nil {
		t.Fatal(err)
	}
	h := New(Options{Transports: Transports{Kept: lacking{}, Fresh: lacking{}}, Program: program})
	missing := (*remote.NotInstalledError)(nil)
	if _, err := h.AskAtOtherAddress(t.Context(), entryAt("192.0.2.9:22")); !errors.As(err, &missing) {
		t.Errorf("the node agent would be copied: %v", err)
	}
}
