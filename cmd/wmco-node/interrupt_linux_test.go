package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"wmco/internal/cli"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/test/blocked"
)

// TestAnInterruptEndsARunThatWaitsForItsInput: a caller that is gone without closing stdin holds no host.
func TestAnInterruptEndsARunThatWaitsForItsInput(t *testing.T) {
	t.Parallel()
	m := newSimulated(t, program(t))
	n := bundletest.New()
	archive := n.Archive(t, m.missing(t, n))
	for what, begin := range map[string][]byte{"nothing": nil, "half an archive": archive[:len(archive)/2]} {
		for _, command := range []string{"observe", "verify", "apply"} {
			cmd := m.command(t, nil, command)
			cmd.Stdin = nil
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := stdin.Write(begin); err != nil {
				t.Fatal(err)
			}
			blocked.Reading(t, cmd.Process.Pid, 0)
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			dead := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
			err = cmd.Wait()
			dead.Stop()
			exit := (*exec.ExitError)(nil)
			if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitInterrupted {
				t.Errorf("%s after %s: %v, want status %d\n%s", command, what, err, cli.ExitInterrupted, &stderr)
			}
		}
	}
	if r := m.run(t, archive, "apply"); r.status != cli.ExitDone {
		t.Errorf("applying afterwards: status %d\n%s", r.status, r.stderr)
	}
}
