package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
)

// ErrNotPublished means that a layer's Secret does not exist or may not be read. Both are normal for a moment: the agent
// may see its new bundle before the API server's authorizer has seen the Role for the Secret.
var ErrNotPublished = errors.New("is not published for this node")

// followNode brings the host to its published bundle. It returns only ErrRestart.
func (a *Agent) followNode(ctx context.Context, n Node) error {
	f := &a.follower
	asked := n.Retry != f.report.Retry
	if f.text != n.Desired || !f.accepted {
		if f.text == "" {
			asked = f.recallReport(n.Report, n.Retry)
		}
		before := f.report
		next := follower{text: n.Desired, report: published.Report{Applied: f.report.Applied, Layers: f.report.Layers, Retry: n.Retry}}
		if f.text == n.Desired {
			next.since, next.tried = f.since, f.tried
		}
		a.follower = next
		desired, err := a.acceptAnnotation(ctx, n)
		var why *refusal
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was asked to stop
		case errors.As(err, &why):
			a.noteRefusal(ctx, n.Desired, why)
			return nil
		case err != nil:
			f.report.Desired = desired.Bundle // so that people see what the report is about
			a.noteFailure(ctx, err)
			return nil
		}
		a.refused = ""
		f.accepted, f.desired, f.report.Desired, f.unfinished = true, desired, desired.Bundle, a.isUnfinished(n, desired.Bundle)
		if before.Desired != desired.Bundle || asked {
			before = published.Report{}
		}
		f.report.Crashed = before.Crashed
		if why := a.rolledBack(n, desired.Bundle); why != "" && !asked && !desired.Remove {
			f.noteEnd(published.StateRolledBack, why)
			if before.State != published.StateRolledBack {
				before.Fault, before.Log = "", bundle.LogTail{}
			}
			f.report.Cause, f.report.Fault = cmp.Or(before.Cause, published.CauseInterrupted), cmp.Or(before.Fault, a.undone.fault)
			f.report.Log = a.undone.logOr(before.Log, desired.Bundle)
			a.reportRollback(ctx, desired.Bundle, why)
			return nil
		}
	}
	if f.desired.Remove {
		a.beginRemoval(ctx, n)
		return nil
	}
	if f.unfinished && !asked {
		a.endRollback()
		return nil
	}
	if asked {
		a.second = secondTry{}
	}
	if a.awaitSecondTry() {
		return nil
	}
	f.report.Retry, a.undone = n.Retry, undone{}
	return a.applyAccepted(ctx)
}

// applyAccepted applies what was accepted, and notes how that ended. It returns only ErrRestart.
func (a *Agent) applyAccepted(ctx context.Context) error {
	outcome, err := a.applyOrKeep(ctx)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was asked to stop
	}
	if outcome.Result == protocol.ResultHandedOver {
		return a.restartAfter(outcome)
	}
	a.noteOutcome(ctx, outcome, err)
	if err == nil && a.recorded {
		a.forgetUndone(ctx)
	}
	if outcome.Result == protocol.ResultApplied {
		// What was made has facts of its own: kube-proxy needs the address of the endpoint.
		a.reporter.observeFacts(ctx, a.Engine.Host)
	}
	return a.restartAfter(outcome)
}

// needsError means that the plan needs something that the operator has to do first.
type needsError struct {
	state   published.State
	impact  bundle.Impact
	missing []string
	text    string
	// expired reports whether the impact was permitted too long ago.
	expired bool
}

func (e *needsError) Error() string { return e.text }

// fetchAndApply fetches, observes and applies. An Outcome without a Result means that nothing was begun.
func (a *Agent) fetchAndApply(ctx context.Context) (applier.Outcome, error) {
	b, err := a.fetchBundle(ctx)
	if err != nil {
		return applier.Outcome{}, err
	}
	m, err := b.Manifest()
	if err != nil {
		return applier.Outcome{}, fmt.Errorf("reading the bundle: %w", err)
	}
	source, err := archive.FromBundle(b)
	if err != nil {
		return applier.Outcome{}, fmt.Errorf("reading the bundle: %w", err)
	}
	request := archive.Request{Manifest: m, Source: source}
	observed, err := a.observeHost(ctx, request)
	if err != nil {
		return applier.Outcome{}, err
	}
	a.reporter.noteFacts(observed.Facts, b)
	a.crashes.followServices(b, a.Engine.Self)
	if err := a.checkReady(ctx, request, observed); err != nil {
		return applier.Outcome{}, err
	}
	request.Missing = map[bundle.Digest][]int{}
	for _, missing := range observed.Missing {
		request.Missing[missing.Digest] = missing.Parts
	}
	return a.applyBundle(ctx, request, observed)
}

// fetchBundle returns the bundle with its contents.
func (a *Agent) fetchBundle(ctx context.Context) (bundle.Bundle, error) {
	d := a.follower.desired
	var layers [2]bundle.Layer
	pulled := 0
	for i, l := range []published.Layer{d.Cluster, d.Node} {
		var parts [][]byte
		for _, name := range l.Names() {
			part, err := a.Cluster.Part(ctx, d.Namespace, name)
			if err != nil {
				return bundle.Bundle{}, partError(name, err)
			}
			parts = append(parts, part)
			pulled += len(part)
		}
		var err error
		if layers[i], err = l.Open(parts); err != nil {
			return bundle.Bundle{}, openError(l, d.Namespace, err)
		}
	}
	a.follower.report.Pulled = pulled
	b := bundle.Bundle{Cluster: layers[0], Node: layers[1]}
	if err := a.checkName(b.Node.NodeName); err != nil {
		return bundle.Bundle{}, err
	}
	if err := b.Check(); err != nil {
		return bundle.Bundle{}, err
	}
	a.noteExecutables(b)
	return b, nil
}

// observeHost compares the host with the bundle.
func (a *Agent) observeHost(ctx context.Context, r archive.Request) (protocol.Observation, error) {
	if a.follower.desired.Urgent {
		return a.Engine.ObserveChanges(ctx, r.Manifest, r.Contents())
	}
	return a.Engine.Observe(ctx, r.Manifest, r.Contents(), false)
}

// checkReady returns why the bundle is not applied now.
func (a *Agent) checkReady(ctx context.Context, r archive.Request, o protocol.Observation) error {
	have := map[bundle.Digest]bool{}
	for _, c := range r.Source.Contents() {
		have[c.Digest] = true
	}
	var missing []string
	var lacking []bundle.Digest
	for _, m := range o.Missing {
		if !have[m.Digest] {
			missing, lacking = append(missing, describeContent(r.Manifest, m.Digest)), append(lacking, m.Digest)
		}
	}
	if len(missing) > 0 {
		a.noteLacking(lacking)
		slices.Sort(missing)
		return &needsError{state: published.StatePayloadMissing, missing: missing, text: missingText(missing)}
	}
	// Before the permission: a node is not drained for what its disk has no room for.
	if err := a.checkRoom(ctx, r, o); err != nil {
		return err
	}
	f, now := &a.follower, a.sinceBoot()
	if err := applier.CheckImpact(o.Impact, f.permittedImpact(now)); err != nil {
		needs := &needsError{state: published.StateNeedsPermission, impact: o.Impact, text: err.Error(), expired: f.permissionExpired(now)}
		if needs.expired {
			needs.text = fmt.Sprintf("the plan has impact %s, which was permitted for %s and is not begun later: the operator drains the node and permits it again", o.Impact, time.Duration(f.desired.PermitFor)*time.Second)
		}
		return needs
	}
	if mayCutConnection(o) {
		// It is not begun unless the way back is known to work.
		if _, err := a.Cluster.Heartbeat(ctx); err != nil {
			return &faultError{published.FaultAPI, fmt.Errorf("reading the Node before a change that may cut the host off: %w", err)}
		}
	}
	return nil
}

// missingText names executables. Reports list all of them.
func missingText(paths []string) string {
	more := func(left int) string { return fmt.Sprintf(" and %d more", left) }
	return "not on the host yet: " + bundle.JoinFirst(paths, 3, ", ", more) + "; it is fetched, or the operator copies it over SSH"
}

// describeContent names a content of a payload for people.
func describeContent(m bundle.Manifest, d bundle.Digest) string {
	for _, l := range m.Layers {
		for _, p := range l.Layer.Payload {
			if p.Digest == d {
				return p.Path
			}
		}
	}
	return string(d)
}

// applyBundle hands the bundle over to the engine.
func (a *Agent) applyBundle(ctx context.Context, r archive.Request, o protocol.Observation) (applier.Outcome, error) {
	contents, err := r.Deliver(ctx)
	if err != nil {
		return applier.Outcome{}, fmt.Errorf("reading the bundle: %w", err)
	}
	defer contents.Close()
	a.reports = false
	permitted := a.follower.permittedImpact(a.sinceBoot())
	options := applier.Options{
		MaxImpact: permitted, Reboot: permitted == bundle.ImpactReboot, LockWait: lockWait, OnlyChanges: a.follower.desired.Urgent, Resume: a.confirmationOfResumed,
		RemoveSigningKeys: true, // the accepted state was signed with one of them
	}
	if confirmer := confirmerOf(o); confirmer != "" {
		a.follower.report.State, a.follower.report.Message = published.StateApplying, ""
		facts := a.reporter.before.Facts
		a.sendReport(ctx)
		if err := a.awaitReplaced(ctx, facts); err != nil {
			return applier.Outcome{}, err
		}
		options.Confirm, options.ConfirmWithin, options.Confirmer = a.confirmationOf(confirmer), a.Options.Confirm, confirmer
	}
	return a.Engine.Apply(ctx, r.Manifest, contents, options)
}

// noteOutcome notes how it ended.
func (a *Agent) noteOutcome(ctx context.Context, o applier.Outcome, err error) {
	f := &a.follower
	var needs *needsError
	var back *applier.RolledBackError
	var newer *bundle.SchemaError
	var why *refusal
	var unfinished *applier.UnfinishedError
	switch {
	case err == nil && o.Result == protocol.ResultReboot:
		f.noteEnd(published.StateRebootPending, "")
		f.report.RebootPending, f.retryAt = o.RebootPending, a.sinceBoot()+bootInterval
	case err == nil:
		a.second = secondTry{}
		f.noteEnd(published.StateApplied, "")
		f.report.RebootPending, f.report.Missing, f.report.Impact = o.RebootPending, nil, ""
		f.report.Applied, f.report.Layers = f.desired.Bundle, []bundle.Digest{f.desired.Cluster.Digest, f.desired.Node.Digest}
		if o.Result == protocol.ResultApplied {
			a.sendEventToNode(ctx, Event{Reason: EventApplied, Message: fmt.Sprintf("bundle %s: %s written, %s restarted",
				f.desired.Bundle.Short(), bundle.Count(o.Written, "file"), bundle.Count(o.Restarted, "service"))})
		}
	case errors.As(err, &needs):
		f.noteEnd(needs.state, needs.text)
		f.report.Impact, f.report.Missing, f.report.Expired = needs.impact, needs.missing, needs.expired
		if needs.state == published.StatePayloadMissing {
			f.noteRetry(a.sinceBoot(), a.Options.Jitter)
		}
	case errors.As(err, &unfinished) && !errors.Is(unfinished.Why, applier.ErrDiskFull): // whatever keeps the rollback from its end
		a.noteFailure(ctx, err)
		f.unfinished, f.report.Cause, f.report.Log = true, causeOf(unfinished.Why), o.Log
	case errors.Is(err, applier.ErrDiskFull): // it is retried, also if it was rolled back
		if errors.As(err, &back) {
			f.tried = max(f.tried, triedFull)
		}
		a.noteFailure(ctx, err)
	case errors.As(err, &back) && a.grantSecondTry(f.desired.Bundle, err, faultOfRollback(err)):
		a.noteFailure(ctx, a.second.why)
		f.retryAt = a.second.at
	case errors.As(err, &back):
		f.noteEnd(published.StateRolledBack, err.Error())
		f.report.Cause, f.report.Fault, f.report.Log = causeOf(back), faultOfRollback(err), o.Log
		a.sendRollback(ctx, f.desired.Bundle, err.Error(), o.Log)
	case errors.As(err, &newer):
		f.noteEnd(published.StateFailed, err.Error())
		f.report.Fault = faultOf(err)
	case errors.As(err, &why):
		a.noteRefusal(ctx, f.text, why)
	case errors.Is(err, errReplaced): // the next step follows the other one
	default:
		a.noteFailure(ctx, withFixForNewer(err))
	}
}

// noteFailure is for failures that are retried. One that may pass in a moment is not reported at once.
func (a *Agent) noteFailure(ctx context.Context, err error) {
	f, now := &a.follower, a.sinceBoot()
	f.room = nil
	if errors.Is(err, applier.ErrDiskFull) {
		err = a.awaitRoom(ctx, err)
	}
	f.noteRetry(now, a.Options.Jitter)
	a.Log.Warn("following the published bundle", "bundle", f.desired.Bundle.Short(), "error", err, "retry", f.retryAt-now)
	var locked *applier.LockedError
	if errors.Is(err, ErrNotPublished) && now-f.since < publishedWithin || errors.As(err, &locked) && now-f.since < lockedWithin {
		return
	}
	if f.report.State != published.StateFailed {
		a.sendEventToNode(ctx, Event{Warning: true, Reason: EventFailed, Message: fmt.Sprintf("bundle %s: %v", f.desired.Bundle.Short(), err)})
	}
	f.report.State, f.report.Message, f.report.Fault = published.StateFailed, err.Error(), faultOf(err)
}
