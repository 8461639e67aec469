package winhost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/windows/svc"
)

// stopHint is what the service control manager is told about how long a stop takes, each time anew until it is done.
const stopHint = 30 * time.Second

// beat is how often it is told that the stop goes on.
const beat = 5 * time.Second

// Service runs do as the Windows service of that name, and returns when do has. The service control manager must have
// started the program: a flag on the command line says so, since the program cannot find out. The context ends when it
// asks for a stop or the machine shuts down. An error of do is the failure of the service, which its recovery answers.
func Service(name string, do func(context.Context) error) error {
	h := &serviceHandler{do: do}
	if err := svc.Run(name, h); err != nil {
		return fmt.Errorf("running as service %s: %w", name, err)
	}
	return h.err
}

type serviceHandler struct {
	do  func(context.Context) error
	err error
}

// exitFailed is the service's own exit code for an error of do.
const exitFailed = 1

// Execute is called by the service control manager's thread
// (learn.microsoft.com/windows/win32/services/service-control-handler-function).
func (h *serviceHandler) Execute(_ []string, requests <-chan svc.ChangeRequest, changes chan<- svc.Status) (specific bool, code uint32) {
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
			return h.exit(ctx)
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

// exit is clean after a stop, whatever the stop interrupted.
func (h *serviceHandler) exit(ctx context.Context) (specific bool, code uint32) {
	if ctx.Err() != nil && errors.Is(h.err, context.Canceled) {
		h.err = nil
	}
	if h.err != nil {
		return true, exitFailed
	}
	return false, 0
}
