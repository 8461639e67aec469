package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"wmco/applier/hosttest"
	"wmco/applier/hosttest/bundletest"
	"wmco/applier/hosttest/folderhost"
	"wmco/applier/session"
	"wmco/internal/cli"
)

// serving starts a program that serves, on a machine of its own.
func serving(t *testing.T, idle time.Duration) (caller *session.Caller, interrupt func(), ended <-chan int) {
	t.Helper()
	root := t.TempDir()
	host, err := folderhost.Create(root, folderhost.Options{Facts: hosttest.Facts()})
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Close(); err != nil {
		t.Fatal(err)
	}
	stdin, toProgram := io.Pipe()
	fromProgram, stdout := io.Pipe()
	ctx, interrupt := context.WithCancel(t.Context())
	end := make(chan int, 1)
	a := &app{stdin: stdin, stdout: stdout, stderr: t.Output(), clock: clock{}, version: "test", root: root, idle: idle}
	go func() {
		status := run(ctx, a, []string{"serve"})
		_ = stdout.Close()
		end <- status
	}()
	t.Cleanup(interrupt)
	return session.NewCaller(fromProgram, toProgram), interrupt, end
}

// served runs a command and returns how it ended, and what it printed.
func served(t *testing.T, c *session.Caller, stdin []byte, words ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, complaint bytes.Buffer
	how, err := c.Call(session.Call{
		Words: words, Stderr: &complaint,
		Stdin:  func(w io.Writer) error { _, err := w.Write(stdin); return err },
		Stdout: func(r io.Reader) error { _, err := out.ReadFrom(r); return err },
	})
	if err != nil {
		t.Fatalf("%s: %v", words, err)
	}
	return how.Status, out.String(), complaint.String()
}

func TestASessionRunsTheSameCommands(t *testing.T) {
	t.Parallel()
	n := bundletest.New()
	c, _, ended := serving(t, time.Hour)
	for _, step := range []struct {
		words  string
		stdin  []byte
		status int
		says   string
	}{
		{"observe", n.Archive(t, nil), cli.ExitDiffers, `"inSync": false`},
		{"apply", n.Archive(t, nil), cli.ExitUsage, `"result":"refused"`},
		{"apply --dry-run", n.Archive(t, nil), cli.ExitDone, `"result":"planned"`},
		{"apply", n.Archive(t, n.Needs(t)), cli.ExitDone, `"result":"applied"`},
		{"apply", n.Archive(t, nil), cli.ExitDone, `"result":"same"`},
		{"verify", n.Archive(t, nil), cli.ExitDone, `"inSync": true`},
		{"facts", nil, cli.ExitDone, `"hostName"`},
		{"observe", []byte("x"), cli.ExitUsage, ""},
		{"dance", nil, cli.ExitUsage, ""},
		{"cleanup", nil, cli.ExitDone, `"result":"applied"`},
	} {
		status, stdout, stderr := served(t, c, step.stdin, strings.Fields(step.words)...)
		if status != step.status || !strings.Contains(stdout, step.says) {
			t.Errorf("%s: status %d, %s%s", step.words, status, stdout, stderr)
		}
		if (status == cli.ExitUsage) != (stderr != "") {
			t.Errorf("%s: status %d and stderr %q", step.words, status, stderr)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if status := <-ended; status != cli.ExitDone {
		t.Errorf("it ended with %d", status)
	}
}

// A session that nobody uses ends when the program is asked to.
func TestAnIdleSessionIsInterrupted(t *testing.T) {
	t.Parallel()
	c, interrupt, ended := serving(t, time.Hour)
	if status, _, stderr := served(t, c, nil, "facts"); status != cli.ExitDone {
		t.Fatal(stderr)
	}
	interrupt()
	if status := <-ended; status != cli.ExitInterrupted {
		t.Errorf("it ended with %d", status)
	}
}

// A caller that is gone without a word leaves no program behind.
func TestASessionThatNobodyUsesEnds(t *testing.T) {
	t.Parallel()
	c, _, ended := serving(t, 500*time.Millisecond)
	if status, _, stderr := served(t, c, nil, "facts"); status != cli.ExitDone {
		t.Fatal(stderr)
	}
	if status := <-ended; status != cli.ExitDone {
		t.Errorf("it ended with %d", status)
	}
}
