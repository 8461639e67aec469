package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wmco/internal/cli"
)

// waiting are command lines that wait for something that does not come. Each FIFO is a pipe that nobody opens for writing.
func waiting(fifo string) map[string][]string {
	none := filepath.Join("..", "..", "golden", "clusters", "none")
	return map[string][]string{
		"objects on standard input": {"validate", "--from", "-"},
		"objects from a pipe":       {"render", "--all", "--from", fifo},
		"facts on standard input":   {"render", "--all", "--from", none, "--facts", "-"},
		"facts from a pipe":         {"diff", "--from", none, "--against", none, "--facts", fifo},
		"a public key from a pipe":  {"userdata", "--platform", "aws", "--public-key", fifo},
		"a public key on stdin":     {"userdata", "--platform", "aws", "--public-key", "-"},
		"objects of a MachineSet":   {"machineset", "--name", "win", "--from", fifo},
		"an API server":             {"validate", "--from", "cluster"},
		"the operator's API server": {"operator"},
	}
}

// silentCluster returns a kubeconfig for an API server that accepts connections and never answers.
func silentCluster(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() }) // connections wait in its queue
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(path, []byte(`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}],
users: [{name: x, user: {}}], clusters: [{name: x, cluster: {server: "http://`+listener.Addr().String()+`"}}]}`), 0o600))
	return path
}

// program returns the path of this program: the test binary runs main when it is called wmco.
func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	path := filepath.Join(t.TempDir(), "wmco")
	must(t, os.Symlink(self, path))
	return path
}

func TestCtrlCEndsACommandThatWaits(t *testing.T) {
	wmco, cluster := program(t), silentCluster(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, unix.Mkfifo(fifo, 0o600))
	for what, args := range waiting(fifo) {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(what+", "+sig.String(), func(t *testing.T) {
				t.Parallel()
				cmd := exec.CommandContext(t.Context(), wmco, args...)
				cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster)
				_, err := cmd.StdinPipe() // which nobody writes to
				must(t, err)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				must(t, cmd.Start())
				awaitIdle(t, cmd.Process.Pid)
				sent := time.Now()
				must(t, cmd.Process.Signal(sig))
				err = cmd.Wait()
				took := time.Since(sent)
				exit := (*exec.ExitError)(nil)
				if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitInterrupted {
					t.Errorf("%v, want status %d\n%s", err, cli.ExitInterrupted, &stderr)
				}
				// On an idle machine it is half a second; a command that is not interrupted waits for ever.
				if took > 30*time.Second || !strings.Contains(stderr.String(), "interrupted") {
					t.Errorf("ended after %s with %q", took, &stderr)
				}
			})
		}
	}
}

// awaitIdle waits until all threads of a process have been seen asleep several times, so that it waits for something.
func awaitIdle(t *testing.T, pid int) {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	for asleep := 0; asleep < 15; time.Sleep(20 * time.Millisecond) {
		if asleep++; isRunning(t, pid) {
			asleep = 0
		}
		if time.Now().After(end) {
			t.Fatal("it does not wait")
		}
	}
}

// isRunning reports whether a thread of the process runs, or could (proc_pid_stat(5)).
func isRunning(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	must(t, err)
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if _, after, ok := bytes.Cut(stat, []byte(") ")); err != nil || !ok || after[0] != 'S' {
			return true
		}
	}
	return len(threads) == 0
}
