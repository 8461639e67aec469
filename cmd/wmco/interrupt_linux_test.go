package main

import (
	"bytes"
	"errors"
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
	"wmco/internal/test/blocked"
)

// waitsFor is what a command waits for and does not get.
type waitsFor string

const (
	// onInput is standard input without a writer.
	onInput waitsFor = "standard input"
	// onPipe is a FIFO without a writer.
	onPipe waitsFor = "a pipe"
	// onAnswer is that of an API server.
	onAnswer waitsFor = "an answer"
)

// waiting are command lines that wait for something that does not come.
func waiting(fifo string) map[string]struct {
	args []string
	on   waitsFor
} {
	none := filepath.Join("..", "..", "golden", "clusters", "none")
	return map[string]struct {
		args []string
		on   waitsFor
	}{
		"objects on standard input": {[]string{"validate", "--from", "-"}, onInput},
		"objects from a pipe":       {[]string{"render", "--all", "--from", fifo}, onPipe},
		"facts on standard input":   {[]string{"render", "--all", "--from", none, "--facts", "-"}, onInput},
		"facts from a pipe":         {[]string{"diff", "--from", none, "--against", none, "--facts", fifo}, onPipe},
		"a public key from a pipe":  {[]string{"userdata", "--platform", "aws", "--public-key", fifo}, onPipe},
		"a public key on stdin":     {[]string{"userdata", "--platform", "aws", "--public-key", "-"}, onInput},
		"objects of a MachineSet":   {[]string{"machineset", "--name", "win", "--from", fifo}, onPipe},
		"an API server":             {[]string{"validate", "--from", "cluster"}, onAnswer},
		"the operator's API server": {[]string{"operator"}, onAnswer},
	}
}

// silentCluster returns a kubeconfig for an API server that accepts connections and never answers. The channel is closed when it is asked something.
func silentCluster(t *testing.T) (path string, asked chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	asked = make(chan struct{})
	go func() {
		first, err := listener.Accept() // others wait in its queue
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = first.Close() })
		if n, _ := first.Read(make([]byte, 1)); n > 0 {
			close(asked)
		}
	}()
	path = filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(path, []byte(`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}],
users: [{name: x, user: {}}], clusters: [{name: x, cluster: {server: "http://`+listener.Addr().String()+`"}}]}`), 0o600))
	return path, asked
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
	wmco := program(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, unix.Mkfifo(fifo, 0o600))
	for what, c := range waiting(fifo) {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(what+", "+sig.String(), func(t *testing.T) {
				t.Parallel()
				cluster, asked := silentCluster(t)
				cmd := exec.CommandContext(t.Context(), wmco, c.args...)
				cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster)
				_, err := cmd.StdinPipe() // without a writer
				must(t, err)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				must(t, cmd.Start())
				switch c.on {
				case onInput:
					blocked.Reading(t, cmd.Process.Pid, 0)
				case onPipe:
					blocked.Opening(t, cmd.Process.Pid, fifo)
				case onAnswer:
					select {
					case <-asked:
					case <-time.After(5 * time.Minute):
						t.Error("it asks nothing")
					}
				}
				sent := time.Now()
				must(t, cmd.Process.Signal(sig))
				err = cmd.Wait()
				took := time.Since(sent)
				exit := (*exec.ExitError)(nil)
				if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitInterrupted {
					t.Errorf("%v, want status %d\n%s", err, cli.ExitInterrupted, &stderr)
				}
				// On an idle machine it is half a second; a command that is not interrupted waits for ever.
				if took > time.Minute || !strings.Contains(stderr.String(), "interrupted") {
					t.Errorf("ended after %s with %q", took, &stderr)
				}
			})
		}
	}
}
