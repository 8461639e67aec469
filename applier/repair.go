package applier

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// Repair brings the host back to the bundle that was applied last, from the contents that it keeps, entry by entry: what can be
// repaired is, and what cannot is left alone for a while (Backoff) and makes the result partial. An interrupted run is resumed
// or undone. On a host without a bundle it does nothing. A dry run only reports.
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
	return r.end(digest, err)
}

func (r *run) repairHost(ctx context.Context) error {
	if !r.records.Interrupted && !r.options.DryRun {
		if err := r.removeGuard(ctx); err != nil { // of an exchange that another program has ended, or that was given up before it began
			return err
		}
	}
	if !r.records.Interrupted && r.records.Ledger.AppliedDigest() == "" {
		r.progress.result = ResultSame
		if !r.options.DryRun {
			r.records.SweepContents(ctx, r.abandonedSince())
		}
		return nil
	}
	if err := r.permittedRecord(); err != nil {
		if !r.records.Interrupted || r.options.DryRun {
			return err
		}
		return r.rollBackChange(ctx, err)
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
		return r.rollBackChange(ctx, errors.New(cmp.Or(why, "an earlier run was interrupted while it rolled back")))
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
			return r.rollBackChange(ctx, err)
		}
		return err
	}
	return r.convergeHost(ctx, r.records.Journal.Bundle)
}

// repairUnconfirmed ends a run that was interrupted while it waited for the caller.
func (r *run) repairUnconfirmed(ctx context.Context) error {
	j := r.records.Journal
	confirmed, err := r.confirmedDigest(ctx)
	switch {
	case err != nil:
		return err
	case confirmed == j.Bundle.Manifest.Digest:
		return r.convergeHost(ctx, j.Bundle)
	}
	if ask := r.confirmationSource(); ask != nil {
		left := max(j.TimeLeft(r.situation.facts.BootTime, r.Clock.SinceBoot()), leastWait)
		if err := r.pollConfirmation(ctx, ask, left); err != nil {
			return r.rollBackChange(ctx, err)
		}
		r.agreed = true
		return r.convergeHost(ctx, j.Bundle)
	}
	if j.IsLate(r.situation.facts.BootTime, r.Clock.SinceBoot(), r.Clock.Now()) {
		return r.rollBackChange(ctx, errUnconfirmed)
	}
	r.progress.result = ResultPartial
	r.progress.note("waiting for confirmation")
	return nil
}

// leastWait is how long a confirmer is asked whose deadline passed while nobody could ask it.
const leastWait = 30 * time.Second

// confirmedDigest returns the digest that the caller confirmed, by Confirm in another process.
func (e *Engine) confirmedDigest(ctx context.Context) (bundle.Digest, error) {
	data, err := records.ReadAll(ctx, e.Host, records.FileConfirm)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return bundle.Digest(data), err
}

// Confirm confirms a bundle that another process is applying.
func (e *Engine) Confirm(ctx context.Context, d bundle.Digest) error {
	if err := d.Validate(); err != nil {
		return err
	}
	bad, err := records.UntrustedRecords(ctx, e.Host)
	if err != nil {
		return err
	}
	if slices.Contains(bad, plan.StateFolder) {
		return &RefusedError{Why: "nothing waits for a confirmation: " + plan.StateFolder + " can be changed by others than SYSTEM and Administrators"}
	}
	return e.Host.Write(ctx, records.FileConfirm, bundle.AccessAdmins, strings.NewReader(string(d)))
}

// AwaitConfirm waits until another process calls Confirm for the bundle.
func (e *Engine) AwaitConfirm(ctx context.Context, d bundle.Digest) error {
	for {
		have, err := e.confirmedDigest(ctx)
		if err != nil || have == d {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.Clock.After(lockPause):
		}
	}
}
