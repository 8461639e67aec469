package ssh

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pkg/sftp"

	"wmco/internal/sshtest"
)

// Whatever lies at the agent's path and is not the agent is replaced before anything is run. In front of a real host only members of
// Administrators can put it there (docs/decisions/0015-where-the-agent-is-uploaded.md); a power cut can too.
func TestWhatIsNotTheAgentIsReplacedAndNeverRun(t *testing.T) {
	for _, tt := range []struct {
		what string
		data func(run string) []byte
	}{
		{"a planted program of the same size", func(run string) []byte {
			return append([]byte(run), bytes.Repeat([]byte("#"), int(fake.Size)-len(run))...)
		}},
		{"a planted program of another size", func(run string) []byte { return []byte(run) }},
		{"zeros, after a power cut", func(string) []byte { return make([]byte, fake.Size) }},
		{"the agent with zeros at its end", func(string) []byte { return append(agentBytes(t)[:fake.Size-4096], make([]byte, 4096)...) }},
		{"nothing", func(string) []byte { return nil }},
	} {
		t.Run(tt.what, func(t *testing.T) {
			s := programs.Start(t, sshtest.Options{})
			trace := filepath.Join(t.TempDir(), "it ran")
			write(t, s.Path(fake.Path), string(tt.data("#!/bin/sh\ntouch '"+trace+"'\n")))
			for range 2 {
				if _, err := agent(t, s).Facts(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if _, err := os.Stat(trace); err == nil {
				t.Error("the planted program was run")
			}
			if !uploaded(t, s) {
				t.Error("the agent is not there")
			}
		})
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
