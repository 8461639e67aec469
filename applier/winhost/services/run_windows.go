package services

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/windows/svc"
)

// stopHint is how long the stop takes at most until the next report of progress.
const stopHint = 30 * time.Second

// beat is the time between two reports of progress of a stop.
const beat = 5 * time.Second

// RunAsService runs do as the Windows service with that name, and returns when do does. The service control manager
// must have started the program, with a flag on its command line, as the program cannot find out. The context ends
// when the service control manager requests a stop or the host shuts down. If do returns an error, the service has
// failed and its recovery begins.
func RunAsService(name string, do func(context.Context) error) error {
	h := &handler{do: do}
	if err := svc.Run(name, h); err != nil {
		return fmt.Errorf("running as service %s: %w", name, err)
	}
	return h.err
}

type handler struct {
	do  func(context.Context) error
	err error
}

// exitFailed is the service-specific exit code for an error of do.
const exitFailed = 1

// Execute is called by package svc when the service starts
// (learn.microsoft.com/windows/win32/services/service-control-handler-function).
func (h *handler) Execute(_ []string, requests <-chan svc.ChangeRequest, changes chan<- svc.Status) (specific bool, code uint32) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- h.do(ctx) }()
	status := svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown | svc.AcceptPreShutdown}
	changes <- status
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case h.err = <-done:
			return h.exitCode(ctx)
		case <-tick.C:
			if status.State == svc.StopPending {
				status.CheckPoint++
				changes <- status
			}
		case r := <-requests:
			switch r.Cmd {
			case svc.Stop, svc.Shutdown, svc.PreShutdown:
				stop()
				status = svc.Status{State: svc.StopPending, WaitHint: uint32(stopHint.Milliseconds())} //nolint:gosec // seconds
			}
			changes <- status
		}
	}
}

// exitCode returns the exit code, which is 0 if a stop canceled do.
func (h *handler) exitCode(ctx context.Context) (specific bool, code uint32) {
	if ctx.Err() != nil && errors.Is(h.err, context.Canceled) {
		h.err = nil
	}
	if h.err != nil {
		return true, exitFailed
	}
	return false, 0
}
