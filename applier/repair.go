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
	r := &run{Engine: e, options: o, repairs: true}
	release, err := r.lock(ctx)
	if err != nil {
		return r.ends("", err)
	}
	digest := bundle.Digest("")
	if !o.DryRun {
		err = e.prepare(ctx)
	}
	if err == nil {
		err = r.open(ctx)
	}
	if err == nil {
		digest = r.situation.Ledger.Applied()
		r.options.DryRun = o.DryRun || o.OnlyInterrupted && !r.situation.Interrupted
		if r.situation.Interrupted {
			digest, r.resumed = r.situation.Journal.Bundle.Manifest.Digest, true
		}
		err = r.repair(ctx)
	}
	r.unlock(release)
	return r.ends(digest, err)
}

func (r *run) repair(ctx context.Context) error {
	if !r.situation.Interrupted && !r.options.DryRun {
		if err := r.removeGuard(ctx); err != nil { // of an exchange that another program has ended, or that was given up before it began
			return err
		}
	}
	if !r.situation.Interrupted && r.situation.Ledger.Applied() == "" {
		r.result = ResultSame
		if !r.options.DryRun {
			r.situation.Sweep(ctx, r.abandoned())
		}
		return nil
	}
	if err := r.permittedRecord(); err != nil {
		if !r.situation.Interrupted || r.options.DryRun {
			return err
		}
		return r.undo(ctx, err)
	}
	switch {
	case r.options.DryRun && r.situation.Interrupted:
		return r.preview(ctx, r.situation.Journal.Bundle)
	case r.options.DryRun:
		return r.preview(ctx, r.situation.Ledger.Bundle)
	case !r.situation.Interrupted:
		return r.repairEntries(ctx, r.situation.Ledger.Bundle)
	}
	switch j := r.situation.Journal; j.Phase {
	case records.PhaseRollback:
		return r.undo(ctx, errors.New(cmp.Or(j.Reason, "an earlier run was interrupted while it rolled back")))
	case records.PhaseRecording:
		return r.converge(ctx, j.Bundle)
	case records.PhaseConfirming:
		return r.repairUnconfirmed(ctx)
	case records.PhaseHandover:
		return r.converge(ctx, j.Bundle)
	case records.PhaseApplying, records.PhaseReboot:
		if j.Bundle.Manifest.Digest == r.situation.Ledger.Applied() {
			return r.repairEntries(ctx, j.Bundle)
		}
		err := r.converge(ctx, j.Bundle)
		var refused *RefusedError
		if errors.As(err, &refused) && refused.Impact == "" { // what costs more waits until that is allowed
			return r.undo(ctx, err)
		}
		return err
	}
	return r.converge(ctx, r.situation.Journal.Bundle)
}

// repairUnconfirmed ends a run that was interrupted while it waited for the caller.
func (r *run) repairUnconfirmed(ctx context.Context) error {
	j := r.situation.Journal
	confirmed, err := r.confirmed(ctx)
	switch {
	case err != nil:
		return err
	case confirmed == j.Bundle.Manifest.Digest:
		return r.converge(ctx, j.Bundle)
	}
	if ask := r.asks(); ask != nil {
		left := max(j.Left(r.situation.facts.BootTime, r.Clock.SinceBoot()), leastWait)
		if err := r.await(ctx, ask, left); err != nil {
			return r.undo(ctx, err)
		}
		r.agreed = true
		return r.converge(ctx, j.Bundle)
	}
	if j.Late(r.situation.facts.BootTime, r.Clock.SinceBoot(), r.Clock.Now()) {
		return r.undo(ctx, errUnconfirmed)
	}
	r.result = ResultPartial
	r.note("waiting for confirmation")
	return nil
}

// leastWait is how long a confirmer is asked whose deadline passed while nobody could ask it.
const leastWait = 30 * time.Second

// confirmed returns the digest that the caller confirmed, by Confirm in another process.
func (e *Engine) confirmed(ctx context.Context) (bundle.Digest, error) {
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
	bad, err := records.Untrusted(ctx, e.Host)
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
		have, err := e.confirmed(ctx)
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
