package sshtest

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/crypto/ssh"

	"wmco/internal/test/sshtest/simulated"
	"wmco/internal/test/sshtest/sshd"
)

// Options configure a server, mostly its faults.
type Options = sshd.Options

// KeyType is a type of host key.
type KeyType = sshd.KeyType

// The types that OpenSSH servers have.
const (
	Ed25519 = sshd.Ed25519
	ECDSA   = sshd.ECDSA
	RSA     = sshd.RSA
)

// Programs are the programs that servers need, built once per test binary.
type Programs struct{ sshd.Programs }

// Build builds the programs into a folder that Remove removes.
func Build(ctx context.Context) (Programs, error) {
	p, err := sshd.Build(ctx)
	return Programs{p}, err
}

// Server is a server for a test. Its errors end the test.
type Server struct {
	*sshd.Server
	t testing.TB
}

// Start starts a server that ends with the test. The test is skipped where there is no sshd.
func (p Programs) Start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := p.Programs.Start(t.TempDir(), o)
	if errors.Is(err, sshd.ErrNoServer) {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { s.Stop(); s.EndPrograms() })
	return &Server{s, t}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NewKey returns a key that the server does not accept.
func (s *Server) NewKey() ssh.Signer {
	s.t.Helper()
	signer, err := s.Server.NewKey()
	must(s.t, err)
	return signer
}

// Authorize makes the server accept Key.
func (s *Server) Authorize() {
	s.t.Helper()
	must(s.t, s.Server.Authorize())
}

// NewHostKeys replaces the host keys at the next Restart.
func (s *Server) NewHostKeys(kinds ...KeyType) {
	s.t.Helper()
	must(s.t, s.Server.NewHostKeys(kinds...))
}

// AddHostKey adds a host key at the next Restart.
func (s *Server) AddHostKey(kind KeyType) {
	s.t.Helper()
	must(s.t, s.Server.AddHostKey(kind))
}

// Settings changes the behaviour of the host.
func (s *Server) Settings(settings simulated.Settings) {
	s.t.Helper()
	must(s.t, s.Server.Settings(settings))
}

// Restart ends the server and its connections, and starts it again.
func (s *Server) Restart() {
	s.t.Helper()
	must(s.t, s.Server.Restart())
}

// Log returns what sshd logged.
func (s *Server) Log() string {
	s.t.Helper()
	text, err := s.Server.Log()
	must(s.t, err)
	return text
}

// Starts returns the commands that were started on the host, in order.
func (s *Server) Starts() []string {
	s.t.Helper()
	all, err := s.Server.Starts()
	must(s.t, err)
	return all
}

// Path returns the file of a Windows path of the host.
func (s *Server) Path(windows string) string {
	s.t.Helper()
	path, err := s.Server.Path(windows)
	must(s.t, err)
	return path
}
