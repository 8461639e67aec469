package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"wmco/applier/plan"
	"wmco/applier/records"
)

// Cleanup removes everything that is managed: services, files, folders that are empty then, settings that we made, what
// programs of the bundle wrote, and at last our own records. Logs stay, and so do features and the host name. An
// interrupted cleanup starts over.
func (e *Engine) Cleanup(ctx context.Context, o Options) (Outcome, error) {
	r := newRun(e, o)
	return r.end("", r.whileLocked(ctx, func() error { return r.cleanupHost(ctx) }))
}

func (r *run) cleanupHost(ctx context.Context) error {
	var err error
	if err = r.openRecords(ctx); err != nil {
		return err
	}
	t := &plan.Target{Exclusive: map[string]bool{}, Logs: map[string]bool{}}
	t.DropUnwanted(r.records.OwnedBundles(), r.records.FoundEntries(), r.records.MadeFolders())
	for _, b := range r.records.OwnedBundles() {
		old := plan.NewTarget(b, nil)
		for dir := range old.Exclusive {
			t.Exclusive[dir] = true
		}
	}
	o := observer{host: r.Host, cache: r.records.Cache, now: r.Clock.Now()}
	observed, err := o.observeTarget(ctx, t)
	if err != nil {
		return err
	}
	ours, err := r.listAllState(ctx)
	if err != nil {
		return err
	}
	p := plan.Make(t, observed, plan.Circumstances{Owned: map[string]bool{}, Stale: ours, Self: r.Self})
	r.progress.showPlan(p, "", r.records.Notes)
	if r.options.DryRun {
		r.progress.result = ResultPlanned
		return nil
	}
	if err := removeGuard(ctx, r.Host); err != nil { // first: it would restore what is removed
		return &PartialError{Err: err}
	}
	r.progress.result = ResultApplied
	// Leftovers first, because a folder with one in it is not empty. The records go last, as they tell the next try what is left.
	sweepLeftovers(ctx, r.Host, p)
	if err := errors.Join(r.cleanupSteps(ctx, p), r.checkAllKnown(p, observed)); err != nil {
		return &PartialError{Err: err}
	}
	if err := r.removeRecords(ctx); err != nil {
		return &PartialError{Err: err}
	}
	return nil
}

// checkAllKnown returns an error for what may be left because it could not be read.
func (r *run) checkAllKnown(p plan.Plan, observed plan.Observed) error {
	var errs []error
	for _, id := range p.Unknown {
		errs = append(errs, fmt.Errorf("%s: %s", id, observed.Settings[id].Unknown))
	}
	for _, b := range r.records.OwnedBundles() {
		if len(b.Cluster.Networks)+len(b.Node.Networks) > 0 {
			return errors.Join(append(errs, r.situation.checkNetworks())...)
		}
	}
	return errors.Join(errs...)
}

// cleanupSteps does what it can and returns what failed: one file that somebody keeps open does not stop the rest.
func (r *run) cleanupSteps(ctx context.Context, p plan.Plan) error {
	var errs []error
	for _, s := range p.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		do := r.steps.doStep
		if s.Verb == plan.VerbClear {
			do = func(ctx context.Context, s plan.Step) error { return removeTree(ctx, r.Host, s.File.Path) }
		}
		if err := do(ctx, s); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", s.Verb, s.Entry, err))
			continue
		}
		r.progress.countAction(s.Action)
	}
	return errors.Join(errs...)
}

// listAllState returns what programs of our bundles wrote and made.
func (r *run) listAllState(ctx context.Context) (plan.Stale, error) {
	var all plan.Stale
	for _, b := range r.records.OwnedBundles() {
		for _, l := range b.Layers() {
			for _, state := range l.State {
				there, err := statePaths(ctx, r.Host, state)
				if err != nil {
					return plan.Stale{}, err
				}
				all.Paths = append(all.Paths, there...)
			}
			for _, n := range l.Networks {
				if r.situation.facts.Network(n.Name).Name != "" {
					all.Networks = append(all.Networks, n.Name)
				}
			}
		}
	}
	slices.Sort(all.Paths)
	slices.Sort(all.Networks)
	return plan.Stale{Paths: slices.Compact(all.Paths), Networks: slices.Compact(all.Networks)}, nil
}

// removeRecords removes our records, the ledger last but for the folders.
func (r *run) removeRecords(ctx context.Context) error {
	for _, path := range []string{records.DirContents, records.DirPrevious, records.FileCache, records.FileConfirm, records.FileStaged, records.FileUndone, records.FileAccepted, records.FileSigners, records.FileBoots, records.FileJournal, records.FileLedger} {
		if err := removeTree(ctx, r.Host, path); err != nil {
			return fmt.Errorf("removing %s: %w", path, records.HideContentName(err))
		}
	}
	return nil
}
