package winhost

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/windows"

	"wmco/applier"
	"wmco/bundle"
)

// StopService looks at the processes before the stop, when it is known which are the service's: afterwards their parents
// may be gone. Programs of the service that an earlier end of it left behind are ended too.
func (h *Host) StopService(ctx context.Context, name string) error {
	err := manager(func(scm windows.Handle) error {
		return withService(scm, name, toChange, func(s service) error { return s.stop(ctx, h.limits) })
	})
	if noService(err) {
		return nil
	}
	return serviceError(name, "stopping", err)
}

func (s service) stop(ctx context.Context, limits serviceLimits) error {
	status, err := s.status()
	if err != nil {
		return err
	}
	if status.ServiceType&windows.SERVICE_WIN32_OWN_PROCESS == 0 {
		return s.ask(ctx, limits) // the process has other services in it
	}
	_, commandLine, err := s.basics()
	if err != nil {
		return err
	}
	programs, err := programsOf(commandLine)
	if err != nil {
		return err
	}
	processes := group{main: status.ProcessId, programs: programs}
	defer processes.close()
	if err := processes.gather(); err != nil {
		return err
	}
	return s.end(ctx, &processes, limits)
}

// end asks the service to stop and sees its processes go; what is left after the limits is killed.
func (s service) end(ctx context.Context, processes *group, limits serviceLimits) error {
	asked := s.ask(ctx, limits)
	if errors.Is(asked, windows.ERROR_DEPENDENT_SERVICES_RUNNING) || ctx.Err() != nil {
		return errors.Join(asked, ctx.Err())
	}
	if asked == nil {
		gone := func() (bool, error) { return len(processes.alive()) == 0, nil }
		err := poll(ctx, limits.die, limits.poll, gone)
		if !errors.Is(err, errTooLong) {
			return err
		}
	}
	err := s.withoutRecovery(func() error { return processes.kill(ctx, limits) })
	if err == nil {
		err = s.reach(ctx, windows.SERVICE_STOPPED, limits.killed, limits.poll)
	}
	if err != nil {
		return errors.Join(err, asked)
	}
	return nil
}

// ask sends the stop and waits for the service to say that it has stopped. A service that is starting takes no control
// until it runs (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-controlservice).
func (s service) ask(ctx context.Context, limits serviceLimits) error {
	return poll(ctx, limits.stop, max(limits.poll, 10*time.Millisecond), func() (bool, error) {
		status, err := s.status()
		if err != nil || status.CurrentState == windows.SERVICE_STOPPED {
			return true, err
		}
		if status.CurrentState == windows.SERVICE_STOP_PENDING {
			return false, nil
		}
		var answer windows.SERVICE_STATUS
		err = windows.ControlService(s.handle, windows.SERVICE_CONTROL_STOP, &answer)
		if errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE) || errors.Is(err, windows.ERROR_SERVICE_CANNOT_ACCEPT_CTRL) {
			err = nil
		}
		return false, err
	})
}

// withoutRecovery does something that the service control manager takes for a crash of the service, which it would start
// again (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_failure_actionsw). A cut leaves the service without
// a recovery, which the next look at it sees.
func (s service) withoutRecovery(do func() error) error {
	before, err := s.recovery()
	if err != nil {
		return err
	}
	if err := s.setRecovery(bundle.Recovery{ResetSeconds: before.ResetSeconds}); err != nil {
		return err
	}
	err = do()
	return errors.Join(err, s.setRecovery(before))
}

// PutService waits for a name that a deleted service still has.
func (h *Host) PutService(ctx context.Context, config applier.ServiceConfig) error {
	err := manager(func(scm windows.Handle) error {
		return held(poll(ctx, h.limits.free, h.limits.poll, func() (bool, error) {
			err := put(scm, config)
			if errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE) {
				return false, nil
			}
			return err == nil, err
		}))
	})
	if err == nil {
		err = flushHive(hiveServices)
	}
	return serviceError(config.Name, "configuring", err)
}
