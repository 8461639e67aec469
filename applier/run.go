package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// run is one run of the engine: it decides which phase comes next. Each phase is a type that has what it reads and
// writes.
type run struct {
	engine  *Engine
	options Options
	// repairs reports whether the run repairs what differs, and not a caller who wants a bundle applied.
	repairs    bool
	progress   *progress
	quarantine quarantine
	health     health

	// From here on, openRecords sets them.
	situation *situation
	// records are those of the situation.
	records      *records.Records
	steps        *executor
	confirmation *confirmation
	exchange     exchange
	rollback     rollback
	// observed is the host before the first action.
	observed plan.Observed
}

func newRun(e *Engine, o Options) *run {
	p := &progress{clock: e.Clock, send: e.Emit}
	return &run{engine: e, options: o, progress: p, quarantine: quarantine{e.Host, p}, health: health{e.Host, e.Clock, e.Settle, p}}
}

// endRun returns the outcome for a bundle, and sends the last event.
func (r *run) endRun(d bundle.Digest, err error) (Outcome, error) {
	return r.progress.endRun(d, r.records, err)
}

// openRecords loads the records, and removes what interrupted runs left of them.
func (r *run) openRecords(ctx context.Context) (err error) {
	e := r.engine
	if r.situation, err = e.loadSituation(ctx); err != nil {
		return err
	}
	r.records = r.situation.records
	r.steps = &executor{host: e.Host, self: e.Self, records: r.records, progress: r.progress}
	r.confirmation = &confirmation{host: e.Host, clock: e.Clock, records: r.records, progress: r.progress}
	r.exchange = exchange{host: e.Host, self: e.Self, records: r.records, steps: r.steps, progress: r.progress}
	r.rollback = rollback{situation: r.situation, steps: r.steps, progress: r.progress, program: e.Program}
	if r.options.DryRun {
		return nil
	}
	var file *FileError // a program that still runs stays until another time
	if err := r.records.SweepLeftovers(ctx); err != nil && !errors.As(err, &file) {
		return err
	}
	if r.records.Finished {
		return r.records.EndRun(ctx)
	}
	return nil
}

// abandonedAfter is how long a content that no run needs is kept when the host is repaired: its transfer may have been
// interrupted, and its sender comes back.
const abandonedAfter = time.Hour

// abandonedSince returns the time since which contents were written that are kept although no run needs them.
func (r *run) abandonedSince() time.Time {
	if !r.repairs {
		return time.Time{}
	}
	return r.engine.Clock.Now().Add(-abandonedAfter)
}

// prepareFolders makes the folders of the records.
func (e *Engine) prepareFolders(ctx context.Context) error {
	wanted := []struct {
		path   string
		access bundle.Access
	}{
		{bundle.Dir(plan.StateFolder), bundle.AccessUsers},
		{plan.StateFolder, bundle.AccessAdmins},
		{records.DirContents, bundle.AccessAdmins},
		{records.DirPrevious, bundle.AccessAdmins},
	}
	var paths []string
	for _, w := range wanted {
		paths = append(paths, w.path)
	}
	have, err := e.Host.Stat(ctx, paths)
	if err != nil {
		return fmt.Errorf("observing %s: %w", plan.StateFolder, err)
	}
	for i, w := range wanted {
		ours := have[i].Kind == plan.FileDirectory && (i == 0 || have[i].Access == "" || have[i].Access == w.access)
		if ours {
			continue
		}
		if err := e.Host.MakeDirectory(ctx, w.path, w.access); err != nil {
			return fmt.Errorf("making %s: %w", w.path, err)
		}
	}
	return nil
}

// checkAllowed refuses a plan whose impact is too high or that lacks contents.
func (r *run) checkAllowed(p plan.Plan) error {
	if err := CheckImpact(p.HighestImpact(), r.impactLimit()); err != nil {
		return err
	}
	if len(p.Missing) > 0 && !r.options.DryRun {
		return refuseMissing(p.Missing)
	}
	return nil
}

// checkKnown returns an error for a setting that the bundle changes and that could not be read. One that it has in
// common with the bundle that was applied last stays as it is.
func (r *run) checkKnown(p plan.Plan, record records.BundleRecord, observed plan.Observed) error {
	if len(p.Unknown) == 0 {
		return nil
	}
	changed := bundle.Differing(r.records.Ledger.Bundle.ManifestBundle(), record.ManifestBundle())
	for _, id := range p.Unknown {
		why := observed.Settings[id].Unknown
		if slices.Contains(changed, id) {
			return fmt.Errorf("%s is changed: %s", id, why)
		}
		r.progress.noteUnknown(id, why)
	}
	return nil
}

// impactLimit returns the highest impact that is allowed. What was allowed for a run holds for the process that resumes
// it: the host is between two bundles, and rolling back costs no less.
func (r *run) impactLimit() bundle.Impact {
	if j := r.records.Journal; r.repairs && j.Allowed != "" && j.Allowed.Rank() > r.options.MaxImpact.Rank() {
		return j.Allowed
	}
	return r.options.MaxImpact
}

// confirmationSource returns how the run is confirmed, nil if it needs no confirmation or nothing here can ask for it.
func (r *run) confirmationSource() func(context.Context) error {
	if !r.repairs {
		return r.options.Confirm
	}
	if j := r.records.Journal; j.Confirmer != "" && r.options.Resume != nil {
		return r.options.Resume(j.Confirmer)
	}
	return nil
}
