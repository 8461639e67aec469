package applier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// guardSlack is how much longer than a confirmation may take the guard waits: the new process has to be started, after
// a pause of the service control manager.
const guardSlack = 3 * time.Minute

// guardPause is the time between two looks of the guard at the journal.
const guardPause = 2 * time.Second

// GuardHandover waits until the process that took over has confirmed, and rolls back if it does not. Agent is the
// service that it runs as.
func (e *Engine) GuardHandover(ctx context.Context, agent string) (Outcome, error) {
	guard := *e
	guard.Self = ""
	begun := e.Clock.SinceBoot()
	for {
		phase, limit, err := guard.handingOver(ctx)
		limit = cmp.Or(e.GuardWait, limit+guardSlack)
		var newer *bundle.SchemaError
		switch late := e.Clock.SinceBoot()-begun > limit; {
		case errors.As(err, &newer):
			return Outcome{}, nil // a newer program writes its records when it is confirmed
		case err != nil: // another look
		case phase == records.PhaseHandover && late:
			// From here on to the end: the new agent may confirm at this moment, and stop the guard that stops it.
			// Neither would start it again.
			ctx := context.WithoutCancel(ctx)
			if err := e.Host.StopService(ctx, agent); err != nil {
				return Outcome{}, err
			}
			return guard.restoreAgent(ctx, agent, fmt.Errorf("the new node agent did not confirm the bundle within %s", limit))
		case phase == records.PhaseRollback:
			return guard.restoreAgent(ctx, agent, errors.New("an earlier rollback was interrupted"))
		case phase != records.PhaseHandover:
			return Outcome{}, nil
		}
		select {
		case <-ctx.Done():
			return Outcome{}, ctx.Err()
		case <-e.Clock.After(guardPause):
		}
	}
}

// handingOver returns the phase of the run that is under way, and how long its confirmation may take.
func (e *Engine) handingOver(ctx context.Context) (records.Phase, time.Duration, error) {
	r, err := records.LoadRecords(ctx, e.Host)
	if err != nil {
		return "", 0, err
	}
	return r.Journal.Phase, r.Journal.Waiting.Limit, nil
}

// guardLock is how long the guard waits for another run.
const guardLock = time.Minute

// restoreAgent rolls back, unless another process has ended the run, and starts the agent.
func (e *Engine) restoreAgent(ctx context.Context, agent string, why error) (Outcome, error) {
	r := newRun(e, Options{LockWait: guardLock})
	r.repairs = true
	return r.endRun("", r.whileLocked(ctx, func() error {
		if err := r.openRecords(ctx); err != nil {
			return err
		}
		switch r.records.Journal.Phase { //nolint:exhaustive // another process has gone on
		case records.PhaseHandover, records.PhaseRollback:
			r.rollback.guards = true
			return r.rollback.undoRun(ctx, why)
		default:
			r.progress.result = protocol.ResultSame
			return e.Host.StartService(ctx, agent)
		}
	}))
}

// Undone is a bundle that was rolled back by a process that could not report it; zero if none was.
type Undone struct {
	Bundle bundle.Digest
	// Why is why, and Log the end of the log of the service because of which; it is empty where no service was.
	Why string
	Log bundle.LogTail
}

// UnreportedRollback returns what was rolled back by a process that could not report it. It removes the guard that did
// it.
func (e *Engine) UnreportedRollback(ctx context.Context) (Undone, error) {
	u, err := records.ReadUndone(ctx, e.Host)
	undone := Undone{Bundle: u.Bundle}
	undone.Why, undone.Log = splitReason(u.Reason)
	if err != nil || !u.Guarded {
		return undone, err
	}
	return undone, newRun(e, Options{LockWait: guardLock}).whileLocked(ctx, func() error { // until the guard has ended its run
		if err := removeGuard(ctx, e.Host); err != nil {
			return err
		}
		u.Guarded = false
		return records.WriteUndone(ctx, e.Host, u)
	})
}

// ForgetUndone is for a bundle that was applied since.
func (e *Engine) ForgetUndone(ctx context.Context) error {
	return e.Host.Remove(ctx, records.FileUndone)
}
