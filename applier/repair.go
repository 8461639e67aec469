package applier

import (
	"cmp"
	"context"
	"errors"

	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// Repair brings the host back to the bundle that was applied last, from the contents that it keeps, entry by entry:
// what can be repaired is, and what cannot is left alone for a while (Backoff) and makes the result partial. An
// interrupted run is resumed or undone. On a host without a bundle it does nothing. A dry run only reports.
func (e *Engine) Repair(ctx context.Context, o Options) (Outcome, error) {
	r := newRun(e, o)
	r.repairs = true
	digest := bundle.Digest("")
	err := r.whileLocked(ctx, func() error {
		if !o.DryRun {
			if err := e.prepareFolders(ctx); err != nil {
				return err
			}
		}
		if err := r.openRecords(ctx); err != nil {
			return err
		}
		digest = r.records.Ledger.AppliedDigest()
		r.options.DryRun = o.DryRun || o.OnlyInterrupted && !r.records.Interrupted
		if r.records.Interrupted {
			digest, r.progress.resumed = r.records.Journal.Bundle.Manifest.Digest, true
		}
		return r.repairHost(ctx)
	})
	return r.endRun(digest, err)
}

func (r *run) repairHost(ctx context.Context) error {
	if !r.records.Interrupted && !r.options.DryRun {
		if err := removeGuard(ctx, r.engine.Host); err != nil { // of an exchange that another program has ended, or that was given up before it began
			return err
		}
	}
	if !r.records.Interrupted && r.records.Ledger.AppliedDigest() == "" {
		r.progress.result = protocol.ResultSame
		if !r.options.DryRun {
			r.records.SweepContents(ctx, r.abandonedSince())
		}
		return nil
	}
	if err := r.permittedRecord(); err != nil {
		if !r.records.Interrupted || r.options.DryRun {
			return err
		}
		return r.rollback.undoRun(ctx, err)
	}
	switch {
	case r.options.DryRun && r.records.Interrupted:
		return r.previewPlan(ctx, r.records.Journal.Bundle)
	case r.options.DryRun:
		return r.previewPlan(ctx, r.records.Ledger.Bundle)
	case !r.records.Interrupted:
		return r.repairEntries(ctx, r.records.Ledger.Bundle)
	}
	switch j := r.records.Journal; j.Phase {
	case records.PhaseRollback:
		var why string
		why, r.progress.log = splitReason(j.Reason)
		return r.rollback.undoRun(ctx, errors.New(cmp.Or(why, "an earlier run was interrupted while it rolled back")))
	case records.PhaseRecording:
		return r.convergeHost(ctx, j.Bundle)
	case records.PhaseConfirming:
		return r.repairUnconfirmed(ctx)
	case records.PhaseHandover:
		return r.convergeHost(ctx, j.Bundle)
	case records.PhaseApplying, records.PhaseReboot:
		if j.Bundle.Manifest.Digest == r.records.Ledger.AppliedDigest() {
			return r.repairEntries(ctx, j.Bundle)
		}
		err := r.convergeHost(ctx, j.Bundle)
		var refused *RefusedError
		if errors.As(err, &refused) && refused.Impact == "" { // what costs more waits until that is allowed
			return r.rollback.undoRun(ctx, err)
		}
		return err
	}
	return r.convergeHost(ctx, r.records.Journal.Bundle)
}

// repairUnconfirmed ends a run that was interrupted while it waited for the caller.
func (r *run) repairUnconfirmed(ctx context.Context) error {
	j := r.records.Journal
	confirmed, err := r.engine.confirmedDigest(ctx)
	switch {
	case err != nil:
		return err
	case confirmed == j.Bundle.Manifest.Digest:
		return r.convergeHost(ctx, j.Bundle)
	}
	if ask := r.confirmationSource(); ask != nil {
		left := max(j.TimeLeft(r.situation.facts.BootTime, r.engine.Clock.SinceBoot()), leastWait)
		if err := r.confirmation.pollConfirmer(ctx, ask, left); err != nil {
			return r.rollback.undoRun(ctx, err)
		}
		r.confirmation.agreed = true
		return r.convergeHost(ctx, j.Bundle)
	}
	if j.IsLate(r.situation.facts.BootTime, r.engine.Clock.SinceBoot(), r.engine.Clock.Now()) {
		return r.rollback.undoRun(ctx, errUnconfirmed)
	}
	r.progress.result = protocol.ResultPartial
	r.progress.addNote("waiting for confirmation")
	return nil
}
