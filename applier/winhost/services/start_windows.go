package services

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/windows"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/winhost/hklm"
	"wmco/applier/winhost/wait"
	"wmco/bundle"
)

// Services opens the service control manager once for all names.
func (m Manager) Services(ctx context.Context, names []string) ([]plan.ServiceState, error) {
	all := make([]plan.ServiceState, 0, len(names))
	err := withManager(func(scm windows.Handle) error {
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			state, err := m.serviceState(scm, name)
			if err != nil {
				return fmt.Errorf("reading service %s: %w", name, err)
			}
			all = append(all, state)
		}
		return nil
	})
	return all, err
}

func (m Manager) serviceState(scm windows.Handle, name string) (plan.ServiceState, error) {
	state := plan.ServiceState{ServiceConfig: plan.ServiceConfig{Name: name}}
	err := withService(scm, name, toRead, func(s service) (err error) {
		if state.ServiceConfig, err = s.readConfig(); err != nil {
			return err
		}
		return m.describeState(s, &state)
	})
	if noService(err) {
		return plan.ServiceState{ServiceConfig: plan.ServiceConfig{Name: name}}, nil
	}
	return state, err
}

// describeState sets the status, the process and the dependents.
func (m Manager) describeState(s service, state *plan.ServiceState) error {
	status, err := s.queryStatus()
	if err != nil {
		return err
	}
	state.Status, state.Process = statusName(status.CurrentState), int(status.ProcessId)
	if status.CurrentState == windows.SERVICE_RUNNING {
		state.Program = programOf(status.ProcessId)
	}
	marked, err := m.isMarkedForDeletion(s)
	if err != nil {
		return err
	}
	if marked {
		state.Status = plan.ServiceDeleting
	}
	state.Dependents, err = s.runningDependents()
	return err
}

// DeleteService waits until the name is free: Windows removes the service when the last handle to it is closed
// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-deleteservice).
func (m Manager) DeleteService(ctx context.Context, name string) error {
	err := withManager(func(scm windows.Handle) error {
		// First, so that an interrupted deletion is done when the service is deleted again.
		if err := leavePreshutdownOrder(name); err != nil {
			return err
		}
		err := withService(scm, name, toChange, markForDeletion)
		if noService(err) {
			return nil
		}
		if err != nil {
			return err
		}
		gone := func() (bool, error) {
			err := withService(scm, name, toQuery, func(service) error { return nil })
			if noService(err) {
				return true, nil
			}
			return false, err
		}
		return explainHeld(wait.PollUntil(ctx, m.Limits.Delete, m.Limits.Poll, gone))
	})
	if err == nil {
		err = hklm.FlushHive(hive)
	}
	return serviceError(name, "deleting", err)
}

// RetireService marks a service that may run for deletion, and returns the path of its program; empty if there is no
// such service. The service control manager starts a marked service no more, and removes it when it has ended, or with
// the next boot (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-deleteservice, Remarks).
func (m Manager) RetireService(ctx context.Context, name string) (program string, err error) {
	err = withManager(func(scm windows.Handle) error {
		return withService(scm, name, toChange, func(s service) error {
			_, commandLine, err := s.queryBasics()
			if err != nil {
				return err
			}
			program = bundle.Program(commandLine)
			err = windows.DeleteService(s.handle)
			if errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE) {
				return nil
			}
			return err
		})
	})
	if noService(err) {
		return "", nil
	}
	if err == nil {
		err = errors.Join(hklm.FlushHive(hive), ctx.Err())
	}
	return program, serviceError(name, "retiring", err)
}

func markForDeletion(s service) error {
	status, err := s.queryStatus()
	if err != nil {
		return err
	}
	if status.CurrentState != windows.SERVICE_STOPPED {
		return errors.New("it must be stopped first")
	}
	if err := windows.DeleteService(s.handle); !errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE) {
		return err
	}
	return nil
}

// ErrHeld is why the name of a deleted service is not free.
var ErrHeld = errors.New("it is marked for deletion and a program has it open (fix: close services.msc, Task Manager and similar programs, or restart the host)")

// explainHeld adds ErrHeld to the error of a wait that took too long.
func explainHeld(err error) error {
	if errors.Is(err, wait.ErrTooLong) {
		return fmt.Errorf("%w: %w", ErrHeld, err)
	}
	return err
}

func serviceError(name, doing string, err error) error {
	if err == nil {
		return nil
	}
	return &applier.ServiceError{Name: name, Doing: doing, Err: err}
}

// StartService waits until the service reports that it runs.
func (m Manager) StartService(ctx context.Context, name string) error {
	err := withManager(func(scm windows.Handle) error {
		return withService(scm, name, toChange, func(s service) error { return m.startService(ctx, s) })
	})
	return serviceError(name, "starting", err)
}

// startService waits for a service that is stopping before it starts it.
func (m Manager) startService(ctx context.Context, s service) error {
	status, err := s.queryStatus()
	if err == nil && status.CurrentState == windows.SERVICE_STOP_PENDING {
		err = s.awaitStatus(ctx, m.Limits.Stop, m.Limits.Poll, isStopped)
	}
	if err != nil {
		return err
	}
	// Windows refuses to start a service that is marked for deletion. Wine does not.
	if marked, err := m.isMarkedForDeletion(s); err != nil || marked {
		return errors.Join(err, ErrHeld)
	}
	err = retryStart(ctx, func() error { return windows.StartService(s.handle, 0, nil) })
	if err != nil && !errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
		return err
	}
	up := func() (bool, error) {
		status, err := s.queryStatus()
		if err == nil && status.CurrentState == windows.SERVICE_STOPPED {
			err = exitError(status)
		}
		return status.CurrentState == windows.SERVICE_RUNNING, err
	}
	return wait.PollUntil(ctx, m.Limits.Start, m.Limits.Poll, up)
}

// exitError returns how a service ended. The meaning of a service-specific code is not known
// (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_status, dwWin32ExitCode).
func exitError(status windows.SERVICE_STATUS_PROCESS) error {
	code := windows.Errno(status.Win32ExitCode)
	if code == windows.ERROR_SERVICE_SPECIFIC_ERROR {
		return fmt.Errorf("it stopped with service-specific exit code %d", status.ServiceSpecificExitCode)
	}
	return fmt.Errorf("it stopped with exit code %d: %w", status.Win32ExitCode, code)
}

// awaitStatus waits for a status. If it takes too long, the error has what the service does instead.
func (s service) awaitStatus(ctx context.Context, limit, pause time.Duration, reached func(windows.SERVICE_STATUS_PROCESS) bool) error {
	var last windows.SERVICE_STATUS_PROCESS
	err := wait.PollUntil(ctx, limit, pause, func() (ok bool, err error) {
		last, err = s.queryStatus()
		return reached(last), err
	})
	return explainTimeout(err, limit, last)
}

// explainTimeout adds what the service does to the error of a wait that took too long.
func explainTimeout(err error, limit time.Duration, last windows.SERVICE_STATUS_PROCESS) error {
	if errors.Is(err, wait.ErrTooLong) {
		return fmt.Errorf("%w: after %s the service is %s (state %d), process %d", err, limit,
			statusName(last.CurrentState), last.CurrentState, last.ProcessId)
	}
	return err
}

func isStopped(status windows.SERVICE_STATUS_PROCESS) bool {
	return status.CurrentState == windows.SERVICE_STOPPED
}

// hasNoProcess reports whether nothing of the service runs: the process id is 0 then
// (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_status_process). In Wine, a service that was killed
// while it was starting keeps that state.
func hasNoProcess(status windows.SERVICE_STATUS_PROCESS) bool {
	return isStopped(status) || status.ProcessId == 0
}
