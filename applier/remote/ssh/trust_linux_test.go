package ssh

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"golang.org/x/crypto/ssh"

	"wmco/applier/remote"
	"wmco/internal/cli"
	"wmco/internal/test/sshtest"
	"wmco/internal/test/sshtest/simulated"
)

// A damaged agent does nothing and is replaced, whatever a power cut or a disk has left of it: it finds that itself, or Windows does not
// start it. Only members of Administrators can put anything else there (docs/decisions/0015-where-the-agent-is-uploaded.md).
func TestADamagedAgentIsReplacedAndDoesNothing(t *testing.T) {
	for _, tt := range []struct {
		what   string
		damage func(data []byte) []byte
	}{
		{"zeros", func(data []byte) []byte { return make([]byte, len(data)) }},
		{"nothing", func([]byte) []byte { return nil }},
		{"half of it", func(data []byte) []byte { return data[:len(data)/2] }},
		{"all but the last byte", func(data []byte) []byte { return data[:len(data)-1] }},
		{"a byte more", func(data []byte) []byte { return append(data, 0) }},
		{"zeros at its end", func(data []byte) []byte { return append(data[:len(data)-4096], make([]byte, 4096)...) }},
		{"a changed byte at its end", func(data []byte) []byte { data[len(data)-1] ^= 1; return data }},
		{"zeros in its middle", func(data []byte) []byte { clear(data[len(data)/2 : len(data)/2+4096]); return data }},
		{"another program", func([]byte) []byte { return []byte("#!/bin/sh\nexit 2\n") }},
	} {
		for _, shell := range []simulated.Shell{simulated.ShellCmd, simulated.ShellPowerShell} {
			t.Run(tt.what+", "+string(shell), func(t *testing.T) {
				t.Parallel()
				s := programs.Start(t, sshtest.Options{Settings: simulated.Settings{Shell: shell}})
				write(t, s.Path(fake.Path), string(tt.damage(agentBytes(t))))
				_, err := agent(t, s).Apply(t.Context(), small(t, 3, 1), remote.ApplyOptions{}, quiet)
				if err != nil || !uploaded(t, s) {
					t.Errorf("it was not replaced: %v", err)
				}
				asked := words(s)
				if n := len(asked); n < 5 || asked[1] != "" || asked[2] != "version" {
					t.Errorf("asked %q", asked)
				}
			})
		}
	}
}

// The damaged program reads nothing and writes nothing: what it would have been sent stays with the client.
func TestADamagedAgentChangesNothing(t *testing.T) {
	s, p := realHost(t, sshtest.Options{})
	c := remote.NewClient(NewTransport(dialer(t, s)), p, remote.DefaultLimits())
	defer c.Close()
	a := c.AgentFor(at(s, s.Address))
	mustApply(t, a, small(t, 3, 1))
	data, err := os.ReadFile(s.Path(p.Path))
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	write(t, s.Path(p.Path), string(data))
	for _, command := range [][]string{{"apply"}, {"cleanup"}, {"repair"}, {"facts"}, {"version"}, nil} {
		cmd := exec.CommandContext(t.Context(), s.Path(p.Path), command...)
		cmd.Env = append(os.Environ(), simulated.RootVariable+"="+s.Root)
		reads, writes, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = reads
		out, failed := cmd.Output()
		if cmd.ProcessState.ExitCode() != cli.ExitDamaged || len(out) > 0 {
			t.Errorf("%v: printed %q, %v", command, out, failed)
		}
		_, _ = reads.Close(), writes.Close()
	}
	if list := differs(t, s, small(t, 3, 1)); len(list) > 0 {
		t.Errorf("it changed %v", list)
	}
	// A kept client finds it too, whose agent has answered before.
	mustApply(t, a, small(t, 3, 2))
	if now, err := os.ReadFile(s.Path(p.Path)); err != nil || bytes.Equal(now, data) {
		t.Errorf("it was not replaced: %v", err)
	}
}

// A command that does not end may be that of a damaged agent: the next one reads it back.
func TestAnAgentThatDoesNotEndIsReadBackByTheNextCommand(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	write(t, s.Path(fake.Path), "#!/bin/sh\nsleep 60\n")
	l := remote.DefaultLimits()
	l.Question = time.Second
	c := remote.NewClient(NewTransport(dialer(t, s)), fake, l)
	defer c.Close()
	a := c.AgentFor(at(s, s.Address))
	if _, err := a.Facts(t.Context()); kind(err) != "interrupted" {
		t.Errorf("%s: %v", kind(err), err)
	}
	if _, err := a.Facts(t.Context()); err != nil || !uploaded(t, s) {
		t.Errorf("it was not replaced: %v", err)
	}
}

func agentBytes(t *testing.T) []byte {
	t.Helper()
	from, err := fake.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	data, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// OpenSSH's SFTP server logs what it does.
func TestTheAgentIsFlushedBeforeItGetsItsName(t *testing.T) {
	server := "/usr/lib/openssh/sftp-server"
	if _, err := os.Stat(server); err != nil {
		t.Skip("needs OpenSSH's SFTP server: make setup installs openssh-server")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, server, "-e", "-l", "VERBOSE")
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := sftp.NewClientPipe(out, in)
	if err != nil {
		t.Fatal(err)
	}
	meter := &meter{Reader: out}
	f, name := files{c, meter}, filepath.Join(t.TempDir(), "agent.exe")
	if err := f.Write(name+".new", strings.NewReader("agent"), 0, 5); err != nil {
		t.Fatal(err)
	}
	if err := f.Replace(name+".new", name); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it ends with the client
	written, flushed, renamed := strings.Index(log.String(), "open "), strings.Index(log.String(), "fsync "), strings.Index(log.String(), "posix-rename ")
	if written < 0 || flushed < written || renamed < flushed {
		t.Errorf("opened, flushed and renamed at %d, %d, %d:\n%s", written, flushed, renamed, log.String())
	}
}

// TestTheKeyOfALoginIsSaid where it is known: not where several were offered, and not where none was accepted.
func TestTheKeyOfALoginIsSaid(t *testing.T) {
	s := programs.Start(t, sshtest.Options{})
	stranger := s.NewKey()
	for name, c := range map[string]struct {
		offered []ssh.Signer
		want    bool
	}{"one key": {[]ssh.Signer{s.Key}, true}, "a key that is refused": {[]ssh.Signer{stranger}, false}, "two keys": {[]ssh.Signer{stranger, s.Key}, false}} {
		d := dialer(t, s)
		d.Signers = keys(c.offered...)
		var traffic Traffic
		d.Traffic = &traffic
		var said []string
		d.OnLogin = func(to remote.Target, key ssh.PublicKey) {
			said = append(said, to.ID+" "+ssh.FingerprintSHA256(key))
		}
		to := at(s, s.Address)
		to.ID = "machine_a"
		_, _ = client(t, d).AgentFor(to).Facts(t.Context()) // refused for the stranger
		want := []string{"machine_a " + ssh.FingerprintSHA256(s.Key.PublicKey())}
		if c.want != slices.Equal(said, want) || !c.want && len(said) > 0 {
			t.Errorf("%s: %v", name, said)
		}
		if in := traffic.CountLogins() > 0; in != slices.Contains(c.offered, s.Key) {
			t.Errorf("%s: %d logins", name, traffic.CountLogins())
		}
	}
}

// TestALoginWithoutAKeyIsNoLoginWithOne: a host that lets everybody in has shown nothing about the key that was offered (RFC 4252, 5.2).
func TestALoginWithoutAKeyIsNoLoginWithOne(t *testing.T) {
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(newSigner(t))
	in := make(chan struct{}, 1)
	address := serve(t, func(c net.Conn) {
		server, channels, requests, err := ssh.NewServerConn(c, config)
		if err != nil {
			return
		}
		in <- struct{}{}
		go ssh.DiscardRequests(requests)
		go refuseChannels(channels)
		_ = server.Wait()
	})
	d := Dialer{
		Limits: generous(), Pins: NewKnownHosts(filepath.Join(t.TempDir(), "known_hosts")), Signers: keys(newSigner(t)),
		OnLogin: func(remote.Target, ssh.PublicKey) { t.Error("a login with the key") },
	}
	_, _ = client(t, d).AgentFor(remote.Target{ID: "host", Address: address, User: "u"}).Facts(t.Context())
	select {
	case <-in:
	default:
		t.Error("no login")
	}
}
