package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/internal/cli"
)

const passphrase = "a long sentence"

// newKeyFile makes a private key with this passphrase, or with none.
func (o *overSSH) newKeyFile(t *testing.T, name, passphrase string) (string, ssh.Signer) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must(t, err)
	return o.write(t, name, string(pem.EncodeToMemory(block))), signer
}

// startAgent starts an ssh-agent of the test's own, and returns its socket.
func startAgent(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("ssh-agent")
	if err != nil {
		t.Skip("needs ssh-agent: make setup installs openssh-server, and openssh-client with it")
	}
	socket := filepath.Join(t.TempDir(), "agent")
	cmd := exec.CommandContext(t.Context(), path, "-D", "-a", socket)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the context of the test has ended it
	// The socket is there a moment before the program listens at it.
	for end := time.Now().Add(2 * time.Minute); !answers(socket); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("ssh-agent does not listen")
		}
	}
	return socket
}

// answers reports whether a program listens at a socket.
func answers(socket string) bool {
	conn, err := net.Dial("unix", socket)
	return err == nil && conn.Close() == nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func add(t *testing.T, socket, keyFile string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ssh-add", keyFile)
	cmd.Env = []string{"SSH_AUTH_SOCK=" + socket}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ssh-add: %v\n%s", err, out)
	}
}

func TestLoginWithTheKeysOfSSHAgent(t *testing.T) {
	o := newOverSSH(t, 1)
	empty, strangers, ours, many := startAgent(t), startAgent(t), startAgent(t), startAgent(t)
	for i := range 7 {
		file, _ := o.newKeyFile(t, fmt.Sprint("key-", i), "")
		add(t, many, file)
	}
	add(t, many, o.servers[0].KeyFile)
	for _, name := range []string{"one", "other"} {
		file, _ := o.newKeyFile(t, name, "")
		add(t, strangers, file)
		add(t, ours, file)
	}
	add(t, ours, o.servers[0].KeyFile)
	for _, tt := range []struct {
		what   string
		socket string
		status int
		want   string
	}{
		{"no agent", "", cli.ExitUsage, "ssh-agent is not running: SSH_AUTH_SOCK is not set; or give the private key with --identity"},
		{"an agent that has ended", filepath.Join(o.folder, "nowhere"), cli.ExitUsage, "connecting to ssh-agent"},
		{"an agent without keys", empty, cli.ExitUsage, "ssh-agent has no keys: add one with ssh-add; or give the private key with --identity"},
		{"only keys that the host refuses", strangers, cli.ExitUnreachable, "fix: "},
		{"too many keys before the right one", many, cli.ExitUnreachable, "offer only the key that the host accepts: there are 8"},
		{"the third key is the right one", ours, cli.ExitDone, "applied"},
	} {
		t.Setenv("SSH_AUTH_SOCK", tt.socket)
		got := o.run(t, strings.NewReader(""), append([]string{"apply"}, o.hosts()...))
		if got.status != tt.status || !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("%s: status %d\n%s\n%s", tt.what, got.status, got.stdout, got.stderr)
		}
	}
}

func TestAKeyWithAPassphraseNeedsATerminal(t *testing.T) {
	o := newOverSSH(t, 1)
	file, signer := o.newKeyFile(t, "locked", passphrase)
	o.servers[0].Key = signer
	o.servers[0].Authorize()
	line := append([]string{"verify", "--install", "--identity", file}, o.hosts()...)

	got := o.run(t, strings.NewReader(passphrase+"\n"), line)
	want := "wmco: reading --identity \"" + file + "\": it has a passphrase and there is no terminal to ask for it: add it to ssh-agent and omit --identity\n"
	if got.status != cli.ExitUsage || got.stderr != want {
		t.Errorf("without a terminal: status %d, %q", got.status, got.stderr)
	}
	for _, tt := range []struct {
		what   string
		types  string
		status int
		want   string
	}{
		{"the passphrase", passphrase, cli.ExitDiffers, ""},
		{"another passphrase", "a short one", cli.ExitUsage, "unlocking it with that passphrase"},
		{"nothing", "", cli.ExitUsage, "unlocking it with that passphrase"},
	} {
		x := newTerminal(t)
		go x.whenHidden(t, func() { _, _ = x.person.WriteString(tt.types + "\n") })
		got := o.run(t, x.program, line)
		if got.status != tt.status || !strings.HasPrefix(got.stderr, "Passphrase for "+file+": \n") || !strings.Contains(got.stderr, tt.want) {
			t.Errorf("%s: status %d\n%s", tt.what, got.status, got.stderr)
		}
		if x.hides(t) {
			t.Errorf("%s: the terminal still hides what is typed", tt.what)
		}
		if shown := x.close(); strings.TrimSpace(shown) != "" {
			t.Errorf("%s: the terminal shows %q", tt.what, shown)
		}
	}
}

func TestAskingForAPassphraseEndsWhenTheProgramIsInterrupted(t *testing.T) {
	o := &overSSH{folder: t.TempDir()}
	file, _ := o.newKeyFile(t, "locked", passphrase)
	x := newTerminal(t)
	ctx, interrupt := context.WithCancel(t.Context())
	go x.whenHidden(t, interrupt)
	a := app{stdin: x.program, stdout: x.program, stderr: x.program, now: time.Now, version: "test"}
	status := runCommand(ctx, a, o.line([]string{"verify", "--identity", file, "--host", "127.0.0.1"}))
	if status != cli.ExitInterrupted || x.hides(t) {
		t.Errorf("status %d, the terminal hides what is typed: %t", status, x.hides(t))
	}
	_, _ = x.person.WriteString("\n") // ends the read
}
