package simulation

import (
	"context"

	"wmco/applier/plan"
)

// CrashService ends the process of a running service without warning. Where its recovery asks for it, the service control
// manager will start it again some time after that: RunRecovery is that time.
func (h *Host) CrashService(ctx context.Context, name string) error {
	return h.Edit(ctx, func(s *State) {
		svc, ok := s.Services[Key(name)]
		if !ok || svc.Status == plan.ServiceStopped {
			return
		}
		svc.Status, svc.Processes, svc.Recovers = plan.ServiceStopped, nil, len(svc.Recovery.RestartAfterSeconds) > 0
		s.Services[Key(name)] = svc
	})
}

// RunRecovery does the recovery after CrashService. The service gets its configuration of this moment; neither a stop
// nor another configuration in between ends the wait. Starting a service that runs, or is disabled or deleted by then,
// fails, and is not retried (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-sc_action; event 7032 of the
// service control manager names the error).
func (h *Host) RunRecovery(ctx context.Context, name string) error {
	return h.itself(ctx, func(s *State) error {
		svc, ok := s.Services[Key(name)]
		if !ok || !svc.Recovers {
			return nil
		}
		svc.Recovers = false
		s.Services[Key(name)] = svc
		if err := h.start(s, name, &starting{store: h.Own.State}); asServiceError(name, "starting", err) == err { //nolint:errorlint // it is what it was
			return err
		}
		return h.Own.State.Save(s)
	})
}
