package winetest

import (
	"context"
	"os/exec"
	"testing"
	"time"
)

// Process is a Windows program that runs beside the test. It ends with its machine at the latest.
type Process struct {
	cmd     *exec.Cmd
	streams *streams
	ended   chan struct{}
	err     error
}

// Start starts a program.
func (p *Prefix) Start(t testing.TB, c Command) *Process {
	t.Helper()
	streams, err := newStreams(c.Stdin)
	if err != nil {
		t.Fatal(err)
	}
	// The context of the test ends before the machine does. A program that runs until then must not fail the test.
	x := &Process{cmd: p.machine.wineCommand(context.WithoutCancel(t.Context()), p.machine.job(c)), streams: streams, ended: make(chan struct{})}
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = streams.in, streams.out, streams.err
	if err := x.cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", c.Path, err)
	}
	go func() {
		x.err = x.cmd.Wait()
		close(x.ended)
	}()
	p.started = append(p.started, x)
	return x
}

// endStarted kills what Start started. A program that is just starting would start Windows again while it is being
// ended.
func (p *Prefix) endStarted() {
	for _, x := range p.started {
		select {
		case <-x.ended:
		default:
			_ = x.cmd.Cancel() // it may have ended just now
			<-x.ended
		}
	}
	p.started = nil
}

// Ended is closed when the program has ended.
func (x *Process) Ended() <-chan struct{} { return x.ended }

// Wait waits for the end of the program. If Cut or Reboot killed it, the exit code is not 0.
func (x *Process) Wait(t testing.TB) Result {
	t.Helper()
	select {
	case <-x.ended:
	case <-time.After(patience):
		t.Fatalf("%s is still running", x.cmd.Path)
	}
	defer x.streams.close()
	r, err := x.streams.result(x.err)
	if err != nil {
		r.ExitCode = -1
	}
	return r
}

// Kill ends the program as a crash does.
func (x *Process) Kill(t testing.TB) {
	t.Helper()
	if err := x.cmd.Cancel(); err != nil {
		t.Fatal(err)
	}
	x.Wait(t)
}

// Output returns what the program has printed so far.
func (x *Process) Output(t testing.TB) string {
	t.Helper()
	text, err := all(x.streams.out)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
