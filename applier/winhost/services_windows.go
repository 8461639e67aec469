package winhost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/windows"

	"wmco/applier"
)

// Services opens the service control manager once.
func (h *Host) Services(ctx context.Context, names []string) ([]applier.ServiceState, error) {
	all := make([]applier.ServiceState, 0, len(names))
	err := manager(func(scm windows.Handle) error {
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			state, err := serviceState(scm, name)
			if err != nil {
				return fmt.Errorf("reading service %s: %w", name, err)
			}
			all = append(all, state)
		}
		return nil
	})
	return all, err
}

func serviceState(scm windows.Handle, name string) (applier.ServiceState, error) {
	state := applier.ServiceState{ServiceConfig: applier.ServiceConfig{Name: name}}
	err := withService(scm, name, toRead, func(s service) (err error) {
		if state.ServiceConfig, err = s.config(); err != nil {
			return err
		}
		return s.describe(&state)
	})
	if noService(err) {
		return applier.ServiceState{ServiceConfig: applier.ServiceConfig{Name: name}}, nil
	}
	return state, err
}

// describe tells what a service does.
func (s service) describe(state *applier.ServiceState) error {
	status, err := s.status()
	if err != nil {
		return err
	}
	state.Status, state.Process = statusName(status.CurrentState), int(status.ProcessId)
	marked, err := s.marked()
	if err != nil {
		return err
	}
	if marked {
		state.Status = applier.ServiceDeleting
	}
	state.Dependents, err = s.dependents()
	return err
}

// DeleteService waits for the name to be free: the service goes when the last handle to it is closed
// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-deleteservice).
func (h *Host) DeleteService(ctx context.Context, name string) error {
	err := manager(func(scm windows.Handle) error {
		err := withService(scm, name, toChange, markForDeletion)
		if noService(err) {
			return nil
		}
		if err != nil {
			return err
		}
		gone := func() (bool, error) {
			err := withService(scm, name, toSee, func(service) error { return nil })
			if noService(err) {
				return true, nil
			}
			return false, err
		}
		return held(poll(ctx, h.limits.free, h.limits.poll, gone))
	})
	if err == nil {
		err = flushHive(hiveServices)
	}
	return serviceError(name, "deleting", err)
}

func markForDeletion(s service) error {
	status, err := s.status()
	if err != nil {
		return err
	}
	if status.CurrentState != windows.SERVICE_STOPPED {
		return errors.New("it has not been stopped")
	}
	if err := windows.DeleteService(s.handle); !errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE) {
		return err
	}
	return nil
}

// errHeld says what keeps a deleted service there.
var errHeld = errors.New("it is marked for deletion and some program keeps it open: close services.msc, Task Manager and the like, or restart the machine")

// held explains a wait for the end of a service that took too long.
func held(err error) error {
	if errors.Is(err, errTooLong) {
		return fmt.Errorf("%w: %w", errHeld, err)
	}
	return err
}

func serviceError(name, doing string, err error) error {
	if err == nil {
		return nil
	}
	return &applier.ServiceError{Name: name, Doing: doing, Err: err}
}

// StartService waits until the service says that it runs.
func (h *Host) StartService(ctx context.Context, name string) error {
	err := manager(func(scm windows.Handle) error {
		return withService(scm, name, toChange, func(s service) error { return s.start(ctx, h.limits) })
	})
	return serviceError(name, "starting", err)
}

// start waits for one that is on its way down before it starts it.
func (s service) start(ctx context.Context, limits serviceLimits) error {
	status, err := s.status()
	if err == nil && status.CurrentState == windows.SERVICE_STOP_PENDING {
		err = s.reach(ctx, windows.SERVICE_STOPPED, limits.stop, limits.poll)
	}
	if err != nil {
		return err
	}
	// Wine would start one that is marked.
	if marked, err := s.marked(); err != nil || marked {
		return errors.Join(err, errHeld)
	}
	err = windows.StartService(s.handle, 0, nil)
	if err != nil && !errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
		return err
	}
	up := func() (bool, error) {
		status, err := s.status()
		if err == nil && status.CurrentState == windows.SERVICE_STOPPED {
			err = exitError(status)
		}
		return status.CurrentState == windows.SERVICE_RUNNING, err
	}
	return poll(ctx, limits.start, limits.poll, up)
}

// exitError tells how a service ended. Of a service's own codes we know nothing
// (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_status, dwWin32ExitCode).
func exitError(status windows.SERVICE_STATUS_PROCESS) error {
	code := windows.Errno(status.Win32ExitCode)
	if code == windows.ERROR_SERVICE_SPECIFIC_ERROR {
		return fmt.Errorf("it stopped with its own exit code %d", status.ServiceSpecificExitCode)
	}
	return fmt.Errorf("it stopped with exit code %d: %w", status.Win32ExitCode, code)
}

// reach waits for a state.
func (s service) reach(ctx context.Context, state uint32, limit, pause time.Duration) error {
	return poll(ctx, limit, pause, func() (bool, error) {
		status, err := s.status()
		return status.CurrentState == state, err
	})
}
