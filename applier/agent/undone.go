package agent

import (
	"context"
	"errors"
	"fmt"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/published"
)

// undone is a bundle that was rolled back.
type undone struct {
	bundle bundle.Digest
	why    string
	// log is the end of the log of the service because of which.
	log bundle.LogTail
	// fault is whose fault it was; empty where that is not known.
	fault published.Fault
	// unsaid is true while this was not reported.
	unsaid bool
}

// logOr returns the end of the log if the undone bundle is this one, and otherwise what was reported of it before.
func (u undone) logOr(reported bundle.LogTail, desired bundle.Digest) bundle.LogTail {
	if u.bundle == desired {
		return u.log
	}
	return reported
}

// recallUndone notes what was rolled back before this process was started, by one that could not report it:
// bundle.GuardService, or a program whose service was given back to this one.
func (a *Agent) recallUndone(ctx context.Context) {
	u, err := a.Engine.UnreportedRollback(ctx)
	if err != nil {
		a.Log.Warn("looking for a rollback", "error", err)
	}
	if u.Bundle == "" {
		return
	}
	a.undone, a.recorded = undone{bundle: u.Bundle, why: u.Why, log: u.Log, unsaid: true}, true
	a.Log.Error("a bundle was rolled back", "bundle", u.Bundle.Short(), "reason", u.Why)
}

// reportRollback reports once that a bundle was rolled back by a process that could not report it.
func (a *Agent) reportRollback(ctx context.Context, d bundle.Digest, why string) {
	if a.undone.unsaid {
		a.undone.unsaid = false
		a.sendRollback(ctx, d, why, a.undone.log)
	}
}

// sendRollback sends the event of a rollback, with as many lines of the log as fit.
func (a *Agent) sendRollback(ctx context.Context, d bundle.Digest, why string, log bundle.LogTail) {
	a.sendEventToNode(ctx, Event{Warning: true, Reason: EventRolledBack,
		Message: published.AppendLog(fmt.Sprintf("bundle %s: %s", d.Short(), why), log)})
}

// forgetUndone removes the record of a rollback after which a bundle was applied.
func (a *Agent) forgetUndone(ctx context.Context) {
	if err := a.Engine.ForgetUndone(ctx); err != nil {
		a.Log.Warn("forgetting a rollback", "error", err)
		return
	}
	a.recorded = false
}

// rolledBack returns why a bundle was rolled back before it was followed: by an earlier process, as in its report,
// or by this one when it resumed what an earlier one had begun. It is not retried until it changes or a person
// asks. A bundle that had no room on the disk is: the journal of a rollback that was interrupted does not have that, and the
// report of the earlier process does.
func (a *Agent) rolledBack(n Node, desired bundle.Digest) string {
	before, err := published.DecodeReport(n.Report)
	about := err == nil && before.Desired == desired
	switch {
	case about && before.WaitsForRoom() && before.Cause == "":
		return ""
	case a.undone.bundle == desired:
		return a.undone.why
	case about && before.State == published.StateRolledBack:
		return before.Message
	}
	return ""
}

// isUnfinished reports whether an earlier process has reported that a bundle is being rolled back, which this one could
// not end either.
func (a *Agent) isUnfinished(n Node, desired bundle.Digest) bool {
	before, err := published.DecodeReport(n.Report)
	return err == nil && before.Desired == desired && before.State == published.StateFailed && before.Cause != "" && a.undone.bundle != desired
}

// endRollback has the next step go on with a rollback that has not ended, before its bundle is followed again.
func (a *Agent) endRollback() {
	a.follower.noteRetry(a.sinceBoot(), a.Options.Jitter)
	a.repairAt = a.sinceBoot()
}

// noteResumed notes how a run ended that another process of the agent had begun.
func (a *Agent) noteResumed(ctx context.Context, o applier.Outcome, err error) {
	var back *applier.RolledBackError
	var refused *applier.RefusedError
	short := o.Bundle.Short()
	switch {
	case errors.As(err, &refused): // the published bundle is applied again as a whole, if that is allowed
		a.Log.Warn("an interrupted run is not resumed", "bundle", short, "error", err)
	case errors.As(err, &back) && errors.Is(err, applier.ErrDiskFull): // it is retried when there is room
		a.Log.Error("an interrupted run was rolled back for want of room", "bundle", short, "error", err)
	case errors.As(err, &back):
		if !a.grantSecondTry(o.Bundle, err, faultOf(err)) { // of a rollback that another process began, the reason is a text
			a.undone = undone{bundle: o.Bundle, why: err.Error(), log: o.Log, fault: faultOf(err)}
		}
		if a.follower.desired.Bundle == o.Bundle { // a rollback of this process, which had not ended
			a.follower.accepted, a.follower.room, a.follower.retryAt = false, nil, a.sinceBoot()
		}
		a.Log.Error("an interrupted run was rolled back", "bundle", short, "error", err)
		a.sendRollback(ctx, o.Bundle, err.Error(), o.Log)
	case err != nil:
		a.Log.Error("resuming an interrupted run", "bundle", short, "error", err)
	case o.Result == protocol.ResultApplied:
		if a.recorded { // a person asked for another try, and it worked
			a.undone = undone{}
			a.forgetUndone(ctx)
		}
		a.sendEventToNode(ctx, Event{Reason: EventApplied, Message: fmt.Sprintf("bundle %s: an interrupted run was resumed", short)})
	}
}

// causeOf returns why a run is rolled back.
func causeOf(err error) published.Cause {
	var service *applier.ServiceError
	switch {
	case errors.As(err, &service):
		return published.CauseService
	case errors.Is(err, errNotReady), errors.Is(err, errSilent), errors.Is(err, errAway):
		return published.CauseConfirmation
	}
	return published.CauseStep
}
