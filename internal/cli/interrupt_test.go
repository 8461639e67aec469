package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// busy is more than any command takes to end, on a machine that has much else to do.
const busy = 5 * time.Second

// execute runs a command with an interrupt after a while, and returns its status and what it printed.
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
	never, closeNever := io.Pipe()
	t.Cleanup(func() { _ = closeNever.Close() })
	status, stderr, took := execute(t, func(context.Context) error {
		_, err := io.ReadAll(never)
		return err
	})
	if status != ExitInterrupted || stderr != "program: interrupted\n" || took > busy {
		t.Errorf("status %d after %s, %q", status, took, stderr)
	}
}

func TestAnInterruptedCommandMayReportItsEnd(t *testing.T) {
	status, stderr, _ := execute(t, func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New("nothing was changed")
	})
	if status != ExitInterrupted || stderr != "program: nothing was changed\n" {
		t.Errorf("status %d, %q", status, stderr)
	}
}

func TestAnOrderlyEndIsAwaited(t *testing.T) {
	status, stderr, took := execute(t, func(ctx context.Context) error {
		defer Orderly(ctx)()
		<-ctx.Done()
		time.Sleep(2 * grace)
		return errors.New("rolled back")
	})
	if status != ExitInterrupted || stderr != "program: rolled back\n" || took < 2*grace {
		t.Errorf("status %d after %s, %q", status, took, stderr)
	}
}

func TestNothingBeginsOnceAnInterruptedProgramEnds(t *testing.T) {
	began := make(chan struct{})
	status, _, _ := execute(t, func(ctx context.Context) error {
		time.Sleep(2 * grace) // left behind
		defer Orderly(ctx)()
		close(began)
		return nil
	})
	select {
	case <-began:
		t.Error("a change began after the end")
	case <-time.After(3 * grace):
	}
	if status != ExitInterrupted {
		t.Errorf("status %d", status)
	}
}

func TestAReaderEndsWithItsContext(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	never, closeNever := io.Pipe()
	t.Cleanup(func() { _ = closeNever.Close() })
	in := Reader(ctx, io.MultiReader(strings.NewReader("text"), never))
	begin := make([]byte, 4)
	if _, err := io.ReadFull(in, begin); err != nil || string(begin) != "text" {
		t.Fatalf("%q, %v", begin, err)
	}
	interrupt()
	if _, err := in.Read(begin); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	all, err := io.ReadAll(Reader(t.Context(), strings.NewReader("text")))
	if err != nil || string(all) != "text" {
		t.Errorf("%q, %v", all, err)
	}
}
