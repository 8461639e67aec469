package winetest

import (
	"context"
	"fmt"
	"testing"
)

// Reboot ends every program, writes the registry to the disk and boots Windows again.
func (p *Prefix) Reboot(t testing.TB) {
	t.Helper()
	p.boot(t, p.machine.shutDown)
}

// Cut simulates a loss of power and boots Windows again. Every program is killed. The registry is what Wine wrote to
// the disk last, which it does every 30 seconds and at a Reboot. Files keep what was written to them.
func (p *Prefix) Cut(t testing.TB) {
	t.Helper()
	p.boot(t, p.machine.cut)
}

// boot ends Windows and boots it again.
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

// shutDown returns when the server of Wine has written the registry and ended.
func (m *machine) shutDown(ctx context.Context) error {
	for _, option := range []string{"--kill", "--wait"} {
		r, err := m.runInMachine(ctx, job{dir: prefix, argv: []string{"/usr/bin/wineserver", option}})
		if err != nil {
			return fmt.Errorf("stopping Wine: %w", err)
		}
		// 1: no server ran.
		if r.ExitCode > 1 {
			return fmt.Errorf("stopping Wine: exit code %d: %s", r.ExitCode, r.Stderr)
		}
	}
	return m.windowsEnded()
}

// cut kills all processes of the user of the machine except the shell that does it, and waits for the end of the
// server.
func (m *machine) cut(ctx context.Context) error {
	r, err := m.runInMachine(ctx, job{dir: prefix, argv: []string{"/bin/sh", "-c", "kill -KILL -1; exec /usr/bin/wineserver --wait"}})
	if err != nil {
		return fmt.Errorf("killing Wine: %w", err)
	}
	if r.ExitCode > 1 {
		return fmt.Errorf("killing Wine: exit code %d: %s", r.ExitCode, r.Stderr)
	}
	return m.windowsEnded()
}
