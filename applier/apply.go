package applier

import (
	"context"
	"fmt"
	"slices"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// Apply brings the host to the bundle of the manifest. The error is a *LockedError, a *RefusedError, a
// *bundle.SchemaError, a *RolledBackError, a *PartialError or a *FaultError, or is of the source of the contents. The
// outcome's event is sent as well.
func (e *Engine) Apply(ctx context.Context, m bundle.Manifest, from ContentSource, o Options) (Outcome, error) {
	run := newRun(e, o)
	record, err := e.admitBundle(m, from.Contents())
	switch {
	case err != nil:
	case o.DryRun:
		err = run.dryRun(ctx, record)
	default:
		err = run.whileLocked(ctx, func() error {
			if err := run.receiveContents(ctx, record, from); err != nil {
				return err
			}
			return run.convergeHost(ctx, record)
		})
	}
	return run.endRun(m.Digest, err)
}

// dryRun plans and reports the plan.
func (r *run) dryRun(ctx context.Context, record records.BundleRecord) error {
	if err := r.openRecords(ctx); err != nil {
		return err
	}
	if err := r.engine.checkNodeName(ctx, r.situation, record.Manifest); err != nil {
		return err
	}
	return r.previewPlan(ctx, record)
}

// previewPlan is convergeHost, stopped before the first write.
func (r *run) previewPlan(ctx context.Context, record records.BundleRecord) error {
	_, p, err := r.situation.observeAndPlan(ctx, r.situation.targetOf(record), record, r.options.Full)
	if err != nil {
		return err
	}
	if err := addCorrupt(ctx, r.records.Store, &p); err != nil {
		return err
	}
	r.progress.result, r.progress.pending = protocol.ResultPlanned, p.Pending
	r.progress.showPlan(p, record.Manifest.Digest, r.records.Notes)
	for _, s := range p.Steps {
		r.progress.sendEvent(protocol.Event{Event: protocol.EventAction, Action: &s.Action, Total: r.progress.total})
	}
	if err := r.checkAllowed(p); err != nil {
		return err
	}
	return r.checkKept(ctx, record, p)
}

// convergeHost brings the host to a bundle whose contents are in the store.
func (r *run) convergeHost(ctx context.Context, record records.BundleRecord) error {
	if err := r.confirmHandover(ctx, record.Manifest.Digest); err != nil {
		return err
	}
	if removal := r.records.Removal; removal.Node != "" { // it would remove what follows
		if err := endRemoval(ctx, r.engine.Host, removal); err != nil {
			return err
		}
	}
	if r.options.OnlyChanges {
		r.situation.limitToChanges(record)
	}
	t := r.situation.targetOf(record)
	observed, p, err := r.situation.observeAndPlan(ctx, t, record, r.options.Full)
	if err != nil {
		return err
	}
	r.progress.showPlan(p, record.Manifest.Digest, r.records.Notes)
	if err := r.checkKnown(p, record, observed); err != nil {
		return err
	}
	if err := r.checkAllowed(p); err != nil {
		return err
	}
	if err := r.checkKept(ctx, record, p); err != nil {
		return err
	}
	if err := checkWritable(p, observed); err != nil {
		return err
	}
	if err := keepCurrent(ctx, r.records.Store, p); err != nil {
		return err
	}
	if err := checkContents(ctx, r.records.Store, p); err != nil {
		return err
	}
	sweepLeftovers(ctx, r.engine.Host, p)
	r.progress.pending, r.observed = p.Pending, observed
	if len(p.Steps) == 0 && !r.records.Interrupted {
		r.progress.result = protocol.ResultSame
	} else if err := r.changeToTarget(ctx, record, p, t); err != nil || r.progress.result != protocol.ResultApplied {
		return err
	}
	if err := r.writeLedger(ctx, record, p, t); err != nil {
		return err
	}
	return r.rebootHost(ctx)
}

// confirmHandover confirms the run that the program before this one has begun, if this is the new one. Until then it
// changes nothing, no record either. A run for another bundle is confirmed too, before it begins.
func (r *run) confirmHandover(ctx context.Context, d bundle.Digest) error {
	j := r.records.Journal
	switch {
	case j.Phase != records.PhaseHandover:
		return nil
	case r.engine.Self == "": // from outside, the agent's service is one of many
		return removeGuard(ctx, r.engine.Host)
	}
	observed, p, err := r.situation.observeAndPlan(ctx, r.situation.targetOf(j.Bundle), j.Bundle, false)
	if err != nil {
		return err
	}
	if _, swap := r.exchange.withoutSelf(p, observed); swap != nil {
		return nil // this is the old one still, which was interrupted
	}
	ask := r.options.Confirm
	if r.options.Resume != nil {
		ask = r.options.Resume(j.Confirmer)
	}
	if ask != nil {
		if err := r.confirmation.pollConfirmer(ctx, ask, max(j.Waiting.Limit, leastWait)); err != nil {
			return &PartialError{Err: fmt.Errorf("the new node agent waits for its confirmation: %w", err)}
		}
	}
	r.confirmation.agreed = j.Bundle.Manifest.Digest == d
	return removeGuard(ctx, r.engine.Host)
}

// changeToTarget brings the host to the target, and records its earlier state. The result is ResultApplied where
// nothing is left to do: a boot or the next node agent may have to do the rest.
func (r *run) changeToTarget(ctx context.Context, record records.BundleRecord, p plan.Plan, t *plan.Target) error {
	steps, swap := r.exchange.withoutSelf(p, r.observed)
	if len(steps.Steps) == 0 && p.Reboot && r.awaitsBoot(record) {
		r.progress.result = protocol.ResultReboot
		return r.rebootHost(ctx)
	}
	if err := r.beginRun(ctx, record, p, r.observed, t); err != nil {
		return err
	}
	if err := r.changeHost(ctx, steps, swap, r.observed); err != nil {
		return r.rollback.undoRun(ctx, err)
	}
	if p.Reboot {
		return r.awaitBoot(ctx)
	}
	if err := r.health.awaitStarted(ctx, t, r.records.Journal.Starts); err != nil {
		return r.rollback.undoRun(ctx, err)
	}
	if err := r.confirmation.awaitConfirmer(ctx, r.confirmationSource()); err != nil {
		return r.rollback.undoRun(ctx, err)
	}
	sweepAfter(ctx, r.engine.Host, p)
	if swap == nil {
		r.progress.result = protocol.ResultApplied
		return nil
	}
	if err := r.exchange.handOver(ctx, *swap); err != nil {
		return r.rollback.undoRun(ctx, err)
	}
	r.progress.result, r.records.Applying = protocol.ResultHandedOver, false
	return nil
}

// changeHost does the steps. Before a step that is left out exchanges this program, it keeps the program.
func (r *run) changeHost(ctx context.Context, steps plan.Plan, swap *plan.Step, observed plan.Observed) error {
	if swap != nil {
		if err := r.exchange.keepProgram(ctx, observed); err != nil {
			return err
		}
	}
	first := slices.IndexFunc(steps.Steps, func(s plan.Step) bool { return s.Verb == protocol.VerbStart })
	if first < 0 {
		first = len(steps.Steps)
	}
	if err := r.steps.doSteps(ctx, steps.Steps[:first]); err != nil {
		return err
	}
	if err := r.quarantine.claimPrograms(ctx, r.records, r.observed); err != nil {
		return err
	}
	return r.steps.doSteps(ctx, steps.Steps[first:])
}
