package services

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/windows"

	"wmco/applier/winhost/wait"
	"wmco/bundle"
)

// StopService collects the processes of the service before the stop: after it, their parents may be gone. It also ends
// the processes that were left when the service ended before.
func (m Manager) StopService(ctx context.Context, name string) error {
	err := withManager(func(scm windows.Handle) error {
		return withService(scm, name, toChange, func(s service) error { return s.stopService(ctx, m.Limits) })
	})
	if noService(err) {
		return nil
	}
	return serviceError(name, "stopping", err)
}

func (s service) stopService(ctx context.Context, limits Limits) error {
	status, err := s.queryStatus()
	if err != nil {
		return err
	}
	if status.ServiceType&windows.SERVICE_WIN32_OWN_PROCESS == 0 {
		return s.askToStop(ctx, limits) // the process has other services in it
	}
	_, commandLine, err := s.queryBasics()
	if err != nil {
		return err
	}
	programs, err := programsOf(commandLine)
	if err != nil {
		return err
	}
	processes := group{main: status.ProcessId, programs: programs}
	defer processes.closeHandles()
	if err := processes.gatherProcesses(); err != nil {
		return err
	}
	return s.endProcesses(ctx, &processes, limits)
}

// endProcesses asks the service to stop and waits for its processes to end. It kills those that still run after the
// limits.
func (s service) endProcesses(ctx context.Context, processes *group, limits Limits) error {
	asked := s.askToStop(ctx, limits)
	if errors.Is(asked, windows.ERROR_DEPENDENT_SERVICES_RUNNING) || ctx.Err() != nil {
		return errors.Join(asked, ctx.Err())
	}
	if asked == nil {
		gone := func() (bool, error) { return len(processes.runningProcesses()) == 0, nil }
		err := wait.PollUntil(ctx, limits.Exit, limits.Poll, gone)
		if !errors.Is(err, wait.ErrTooLong) {
			return err
		}
	}
	err := s.withoutRecovery(func() error { return processes.killProcesses(ctx, limits) })
	if err == nil {
		err = s.awaitStatus(ctx, limits.Killed, limits.Poll, hasNoProcess)
	}
	if err != nil {
		return errors.Join(err, asked)
	}
	return nil
}

// askToStop sends the stop and waits until the service reports that it has stopped. A service that is starting accepts
// no control until it runs (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-controlservice).
//
// Each process is asked once: package svc of golang.org/x/sys passes controls through a channel that is not read once
// the service has ended, so a program in Go that gets a second stop at that moment never exits.
func (s service) askToStop(ctx context.Context, limits Limits) error {
	var last windows.SERVICE_STATUS_PROCESS
	asked := map[uint32]bool{}
	err := wait.PollUntil(ctx, limits.Stop, max(limits.Poll, 10*time.Millisecond), func() (bool, error) {
		status, err := s.queryStatus()
		last = status
		if err != nil || status.CurrentState == windows.SERVICE_STOPPED {
			return true, err
		}
		if status.CurrentState == windows.SERVICE_STOP_PENDING || asked[status.ProcessId] {
			return false, nil
		}
		var answer windows.SERVICE_STATUS
		err = windows.ControlService(s.handle, windows.SERVICE_CONTROL_STOP, &answer)
		if errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE) || errors.Is(err, windows.ERROR_SERVICE_CANNOT_ACCEPT_CTRL) {
			return false, nil
		}
		asked[status.ProcessId] = true
		return false, err
	})
	return explainTimeout(err, limits.Stop, last)
}

// withoutRecovery calls do while the service has no recovery. The service control manager would take what do does for a
// crash, and start the service again (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_failure_actionsw).
// If it is interrupted, the service has no recovery, which the next observation finds.
func (s service) withoutRecovery(do func() error) error {
	before, err := s.queryRecovery()
	if err != nil {
		return err
	}
	if err := s.setRecovery(bundle.Recovery{ResetSeconds: before.ResetSeconds}); err != nil {
		return err
	}
	err = do()
	return errors.Join(err, s.setRecovery(before))
}
