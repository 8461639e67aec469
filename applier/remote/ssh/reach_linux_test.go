package ssh

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"wmco/applier/remote"
	"wmco/internal/test/sshtest"
)

func TestErrorsNameThePhaseThatFailed(t *testing.T) {
	works := programs.Start(t, sshtest.Options{})
	for _, tt := range []struct {
		what    string
		address func(t *testing.T) string
		signers func(context.Context) ([]ssh.Signer, error)
		want    string
		retry   bool
	}{
		{"refused", func(t *testing.T) string { return sshtest.Refusing(t) }, nil, "unreachable: connecting to", true},
		{"black hole", func(t *testing.T) string { return sshtest.BlackHole(t) }, nil, "unreachable: connecting to", true},
		{"no such name", func(*testing.T) string { return "does-not-exist.invalid:22" }, nil, "unreachable: connecting to", true},
		{"hangs before its banner", func(t *testing.T) string {
			return sshtest.NewLine(t, works.Address, sshtest.LineOptions{Banner: time.Hour}).Address
		}, nil, "unreachable: SSH handshake with", true},
		{"hangs after its banner", func(t *testing.T) string { return hangsAfterBanner(t) }, nil, "unreachable: SSH handshake with", true},
		{"has too many connections (MaxStartups)", func(t *testing.T) string { return crowded(t).Address }, nil, "unreachable: SSH handshake with", true},
		{"wrong key", func(*testing.T) string { return works.Address }, keys(works.NewKey()), "auth", false},
		{"no key at all", func(*testing.T) string { return works.Address }, keys(), "auth", false},
		{"the right key after wrong ones", func(*testing.T) string { return works.Address }, keys(works.NewKey(), works.NewKey(), works.Key), "none", false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			d := dialer(t, works)
			switch {
			case tt.signers != nil:
				d.Signers = tt.signers
			case tt.want == "unreachable: connecting to":
				d.Limits.Dial = 2 * time.Second
			default:
				d.Limits.Handshake = time.Second
			}
			begin := time.Now()
			_, err := client(t, d).AgentFor(at(works, tt.address(t))).Facts(t.Context())
			if kind(err) != tt.want || remote.IsRetryable(err) != tt.retry {
				t.Errorf("%s (retryable: %t), want %s: %v", kind(err), remote.IsRetryable(err), tt.want, err)
			}
			if err != nil && remote.SuggestFix(err) == "" {
				t.Errorf("%v: nothing to do", err)
			}
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// crowded returns a server that has as many unauthenticated connections as it allows.
func crowded(t *testing.T) *sshtest.Server {
	t.Helper()
	s := programs.Start(t, sshtest.Options{Config: []string{"MaxStartups 1"}})
	c, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return s
}

// hangsAfterBanner returns a server that sends its banner and nothing else.
func hangsAfterBanner(t *testing.T) string {
	t.Helper()
	return serve(t, func(c net.Conn) {
		_, _ = c.Write([]byte("SSH-2.0-OpenSSH_for_Windows_8.1\r\n"))
		<-t.Context().Done()
	})
}

func TestARefusedKeyWorksOnceTheHostAcceptsIt(t *testing.T) {
	s := programs.Start(t, sshtest.Options{Unauthorized: true})
	d := dialer(t, s)
	m := client(t, d).AgentFor(at(s, s.Address))
	_, err := m.Facts(t.Context())
	if kind(err) != "auth" || !strings.Contains(err.Error(), "refuses the login with the key "+describeKey(s.Key.PublicKey())+" (it accepts publickey") {
		t.Fatalf("%s: %v", kind(err), err)
	}
	s.Authorize()
	if _, err := m.Facts(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHostKeysArePinnedOnFirstUse(t *testing.T) {
	s := programs.Start(t, sshtest.Options{HostKeys: []sshtest.KeyType{sshtest.ECDSA}})
	var met []string
	d := dialer(t, s)
	file := filepath.Join(t.TempDir(), "known_hosts")
	d.Pins = NewKnownHosts(file)
	d.OnPin = func(_ remote.Target, key ssh.PublicKey) { met = append(met, key.Type()) }
	d.Limits.Kept = 0
	ask := func() error {
		_, err := client(t, d).AgentFor(at(s, s.Address)).Facts(t.Context())
		return err
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"first contact", func() {}, "none"},
		{"again", func() {}, "none"},
		{"an update adds keys of other types", func() { s.AddHostKey(sshtest.RSA); s.AddHostKey(sshtest.Ed25519); s.Restart() }, "none"},
		{"only a key of another type is left", func() { s.NewHostKeys(sshtest.Ed25519); s.Restart() }, "host key"},
		{"reinstalled, with a key of the same type", func() { s.NewHostKeys(sshtest.ECDSA); s.Restart() }, "host key"},
		{"removed as the error says", func() { forget(t, ask()) }, "none"},
		{"and pinned again", func() {}, "none"},
	} {
		step.do()
		if err := ask(); kind(err) != step.want {
			t.Fatalf("%s: %s, want %s: %v", step.what, kind(err), step.want, err)
		}
	}
	if diff := cmp.Diff([]string{ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA256}, met); diff != "" {
		t.Errorf("pinned (-want +got):\n%s", diff)
	}
}

// forget runs the command of a HostKeyError.
func forget(t *testing.T, err error) {
	t.Helper()
	var changed *remote.HostKeyError
	if !errors.As(err, &changed) {
		t.Fatal(err)
	}
	if !strings.Contains(remote.SuggestFix(err), changed.Unpin) {
		t.Errorf("%q does not say %q", remote.SuggestFix(err), changed.Unpin)
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", changed.Unpin).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", changed.Unpin, err, out)
	}
}

func TestEveryTypeOfHostKeyWorks(t *testing.T) {
	for _, kind := range []sshtest.KeyType{sshtest.Ed25519, sshtest.ECDSA, sshtest.RSA} {
		s := programs.Start(t, sshtest.Options{HostKeys: []sshtest.KeyType{kind}})
		d := dialer(t, s)
		d.Limits.Kept = 0
		m := client(t, d).AgentFor(at(s, s.Address))
		for range 2 {
			if _, err := m.Facts(t.Context()); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

func TestKnownHostsFilesOfOpenSSH(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	other := s.NewKey().PublicKey()
	ours := hostKey(t, s)
	for _, tt := range []struct {
		what, before string
		want         string
		// after is the number of lines afterwards.
		after int
	}{
		{"no file", "", "none", 1},
		{"without an end of line", KnownHostsLine("other:22", other), "none", 2},
		{"a comment and hashed names", "# ours\n" + knownhosts.Line([]string{knownhosts.HashHostname("other")}, other) + "\n", "none", 3},
		{"pinned before", KnownHostsLine(s.Address, ours) + "\n", "none", 1},
		{"pinned before, hashed", knownhosts.Line([]string{knownhosts.HashHostname(knownhosts.Normalize(s.Address))}, ours) + "\n", "none", 1},
		{"one of two keys", KnownHostsLine(s.Address, other) + "\n" + KnownHostsLine(s.Address, ours) + "\n", "none", 2},
		{"another key", KnownHostsLine(s.Address, other) + "\n", "host key", 1},
		{"revoked", "@revoked * " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(ours))) + "\n", "revoked", 1},
		{"not the format", "nonsense\n", "format", 1},
	} {
		t.Run(tt.what, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "of its own", "known_hosts")
			if tt.before != "" {
				write(t, file, tt.before)
			}
			d := dialer(t, s)
			d.Pins = NewKnownHosts(file)
			_, err := client(t, d).AgentFor(at(s, s.Address)).Facts(t.Context())
			got := kind(err)
			switch {
			case errors.Is(err, ErrRevoked):
				got = "revoked"
			case err != nil && strings.Contains(err.Error(), "reading the pinned host keys"):
				got = "format"
			}
			if got != tt.want {
				t.Errorf("%s, want %s: %v", got, tt.want, err)
			}
			data, _ := os.ReadFile(file)
			if n := strings.Count(string(data), "\n"); n != tt.after || !strings.HasPrefix(string(data), tt.before) {
				t.Errorf("%d lines, want %d:\n%s", n, tt.after, data)
			}
			if strings.Contains(tt.before, "|1|other") && strings.Contains(string(data), s.Address) {
				t.Errorf("the new name is not hashed:\n%s", data)
			}
		})
	}
}

// hostKey returns the key that a server shows.
func hostKey(t *testing.T, s *sshtest.Server) ssh.PublicKey {
	t.Helper()
	var shown ssh.PublicKey
	d := dialer(t, s)
	d.OnPin = func(_ remote.Target, key ssh.PublicKey) { shown = key }
	if _, err := client(t, d).AgentFor(at(s, s.Address)).Facts(t.Context()); err != nil {
		t.Fatal(err)
	}
	return shown
}
