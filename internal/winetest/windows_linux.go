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

// bootWindows returns when Windows has booted. Services write to the streams of the first program: here those of the program
// that waits, so that they are in no Result.
func (m *machine) bootWindows(ctx context.Context) error {
	const booted = "booted"
	// The program outlives the context, which is only for the boot.
	cmd := m.command(context.WithoutCancel(ctx), job{dir: prefix, argv: []string{program, "cmd", "/d", "/k", "echo " + booted}})
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
	return fmt.Errorf("booting Windows: %w", errors.Join(lines.Err(), ctx.Err(), m.windowsEnded()))
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
