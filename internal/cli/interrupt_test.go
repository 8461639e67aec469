package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
)

// execute runs a command with an interrupt after a while, and returns its status and what it printed. It is called in the bubble of a synctest,
// in which only waiting takes time.
func execute(t *testing.T, run func(context.Context) error) (status int, stderr string, took time.Duration) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	time.AfterFunc(50*time.Millisecond, interrupt)
	var out bytes.Buffer
	root := &cobra.Command{Use: "program", RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) }}
	root.SetArgs(nil)
	root.SetErr(&out)
	begin := time.Now()
	status = Execute(ctx, root, nil)
	return status, out.String(), time.Since(begin)
}

func TestAnInterruptEndsWhateverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never, closeNever := io.Pipe()
		status, stderr, took := execute(t, func(context.Context) error {
			_, err := io.ReadAll(never)
			return err
		})
		if status != ExitInterrupted || stderr != "program: interrupted\n" || took > time.Second {
			t.Errorf("status %d after %s, %q", status, took, stderr)
		}
		_ = closeNever.Close() // the command that was left behind ends with the test
	})
}

func TestAnInterruptedCommandMayReportItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status, stderr, _ := execute(t, func(ctx context.Context) error {
			<-ctx.Done()
			return errors.New("nothing was changed")
		})
		if status != ExitInterrupted || stderr != "program: nothing was changed\n" {
			t.Errorf("status %d, %q", status, stderr)
		}
	})
}

func TestAnOrderlyEndIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status, stderr, took := execute(t, func(ctx context.Context) error {
			defer Orderly(ctx)()
			<-ctx.Done()
			time.Sleep(time.Hour)
			return errors.New("rolled back")
		})
		if status != ExitInterrupted || stderr != "program: rolled back\n" || took < time.Hour {
			t.Errorf("status %d after %s, %q", status, took, stderr)
		}
	})
}

func TestNothingBeginsOnceAnInterruptedProgramEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var command context.Context
		began := false
		status, _, _ := execute(t, func(ctx context.Context) error {
			command = ctx         //nolint:fatcontext // it is looked at after the end
			time.Sleep(2 * grace) // left behind
			defer Orderly(ctx)()
			began = true
			return nil
		})
		time.Sleep(time.Hour)
		if began {
			t.Error("a change began after the end")
		}
		if status != ExitInterrupted {
			t.Errorf("status %d", status)
		}
		<-command.Value(endings{}).(chan struct{}) // the command that was left behind ends with the test
	})
}
