package winetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// windows is a running Windows. Wine ends when no program runs any more, except services. So this program waits.
type windows struct {
	waiting *exec.Cmd
	stdin   io.Closer
}

// bootAttempts is how often Windows is booted until it has: after a loss of power and on a busy computer, the first
// program sometimes ends before it has begun.
const bootAttempts = 3

// bootWindows returns when Windows has booted.
func (m *machine) bootWindows(ctx context.Context) error {
	var errs []error
	for range bootAttempts {
		err := m.tryToBoot(ctx)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return fmt.Errorf("booting Windows: %w", errors.Join(errs...))
}

// tryToBoot boots once. Services write to the streams of the first program: here those of the program that waits, so
// that they are in no Result.
func (m *machine) tryToBoot(ctx context.Context) error {
	const booted = "booted"
	printed, err := newStreams("")
	if err != nil {
		return err
	}
	defer printed.close()
	// The program outlives the context, which is only for the boot.
	cmd := m.wineCommand(context.WithoutCancel(ctx), job{dir: prefix, argv: []string{program, "cmd", "/d", "/k", "echo " + booted}})
	cmd.Stderr = printed.err
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	m.windows = &windows{waiting: cmd, stdin: stdin}
	defer context.AfterFunc(ctx, func() { _ = cmd.Cancel() })()
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == booted {
			return nil
		}
	}
	_ = cmd.Cancel() // it may have ended
	err = errors.Join(lines.Err(), ctx.Err(), m.windowsEnded())
	if err == nil {
		err = fmt.Errorf("the first program ended: %s", cmd.ProcessState)
	}
	text, err2 := all(printed.err)
	return errors.Join(err, err2, errors.New(text))
}

// windowsEnded waits for the end of Windows.
func (m *machine) windowsEnded() error {
	if m.windows == nil {
		return nil
	}
	w := m.windows
	m.windows = nil
	_ = w.stdin.Close() // it may have ended
	err := w.waiting.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}
