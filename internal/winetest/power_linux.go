package winetest

import (
	"context"
	"fmt"
	"testing"
)

// Reboot ends every program, writes the registry to the disk and boots Windows again.
func (p *Prefix) Reboot(t testing.TB) {
	t.Helper()
	p.boot(t, p.machine.shutdown)
}

// Cut takes the power away, and boots Windows again: every program is gone in the middle of what it did, and of the registry
// there is what was written to the disk last, which Wine does every 30 seconds and at a Reboot. What was written to files is
// there: the disk is this machine's.
func (p *Prefix) Cut(t testing.TB) {
	t.Helper()
	p.boot(t, p.machine.cut)
}

// boot boots Windows again after it has been ended.
func (p *Prefix) boot(t testing.TB, end func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	p.endStarted()
	if err := end(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.machine.bootWindows(ctx); err != nil {
		t.Fatal(err)
	}
}

// shutdown returns when the server has ended, which writes the registry.
func (m *machine) shutdown(ctx context.Context) error {
	for _, option := range []string{"--kill", "--wait"} {
		r, err := m.enter(ctx, job{dir: prefix, argv: []string{"/usr/bin/wineserver", option}})
		if err != nil {
			return fmt.Errorf("stopping Wine: %w", err)
		}
		// 1: there was none.
		if r.ExitCode > 1 {
			return fmt.Errorf("stopping Wine: exit code %d: %s", r.ExitCode, r.Stderr)
		}
	}
	return m.windowsEnded()
}

// cut kills whatever the user of the machine runs, but for the shell that does it, and waits for the server to be gone.
func (m *machine) cut(ctx context.Context) error {
	r, err := m.enter(ctx, job{dir: prefix, argv: []string{"/bin/sh", "-c", "kill -KILL -1; exec /usr/bin/wineserver --wait"}})
	if err != nil {
		return fmt.Errorf("cutting Wine off: %w", err)
	}
	if r.ExitCode > 1 {
		return fmt.Errorf("cutting Wine off: exit code %d: %s", r.ExitCode, r.Stderr)
	}
	return m.windowsEnded()
}
