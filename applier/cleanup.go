package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
)

// Cleanup removes everything that is managed: services, files, folders that are empty then, settings that we made, what
// programs of the bundle wrote, and at last our own records. Logs stay, and so do features and the host name. An
// interrupted cleanup starts over.
func (e *Engine) Cleanup(ctx context.Context, o Options) (Outcome, error) {
	r := newRun(e, o)
	return r.endRun("", r.whileLocked(ctx, func() error {
		if err := r.openRecords(ctx); err != nil {
			return err
		}
		return r.cleanupHost(ctx, endsRemoval)
	}))
}

// caller is who cleans up.
type caller int

const (
	// endsRemoval is any caller but bundle.RemovalService, whose removal it ends.
	endsRemoval caller = iota
	// removesAgents is bundle.RemovalService, which needs no agent that was uploaded.
	removesAgents
)

// cleanup removes everything managed.
type cleanup struct {
	situation *situation
	steps     *executor
	progress  *progress
	by        caller
}

// cleanupHost needs records that are open.
func (r *run) cleanupHost(ctx context.Context, by caller) error {
	c := cleanup{situation: r.situation, steps: r.steps, progress: r.progress, by: by}
	p, observed, err := c.planRemoval(ctx)
	if err != nil {
		return err
	}
	r.progress.showPlan(p, "", r.records.Notes)
	if r.options.DryRun {
		r.progress.result = protocol.ResultPlanned
		return nil
	}
	r.progress.result = protocol.ResultApplied
	if err := c.removeAll(ctx, p, observed); err != nil {
		return &PartialError{Err: err}
	}
	return nil
}

// planRemoval returns the plan that removes everything that is managed, and what it was made from.
func (c cleanup) planRemoval(ctx context.Context) (plan.Plan, plan.Observed, error) {
	s := c.situation
	t := &plan.Target{Exclusive: map[string]bool{}, Logs: map[string]bool{}}
	t.DropUnwanted(s.records.OwnedBundles(), s.records.FoundEntries(), s.records.MadeFolders())
	for _, b := range s.records.OwnedBundles() {
		old := plan.NewTarget(b, nil)
		for dir := range old.Exclusive {
			t.Exclusive[dir] = true
		}
	}
	o := observer{host: s.host, cache: s.records.Cache, now: s.clock.Now()}
	observed, err := o.observeTarget(ctx, t)
	if err != nil {
		return plan.Plan{}, plan.Observed{}, err
	}
	ours, err := c.listAllState(ctx)
	if err != nil {
		return plan.Plan{}, plan.Observed{}, err
	}
	return plan.Make(t, observed, plan.Circumstances{Owned: map[string]bool{}, Stale: ours, Self: s.self}), observed, nil
}

// removeAll does the plan. Leftovers go first, because a folder with one in it is not empty. The records go last, as
// they have the leftovers for the next try.
func (c cleanup) removeAll(ctx context.Context, p plan.Plan, observed plan.Observed) error {
	if err := removeGuard(ctx, c.situation.host); err != nil { // first: it would restore removed entries
		return err
	}
	if c.by == endsRemoval {
		if err := endRemoval(ctx, c.situation.host, c.situation.records.Removal); err != nil {
			return err
		}
	}
	sweepLeftovers(ctx, c.situation.host, p)
	if err := errors.Join(c.doSteps(ctx, p), c.checkAllKnown(p, observed)); err != nil {
		return err
	}
	// Windows removes no name of a program that runs, and the agent has run until now.
	if err := c.situation.records.SweepLeftovers(ctx); err != nil {
		return err
	}
	if err := removeRecords(ctx, c.situation.host); err != nil || c.by == endsRemoval {
		return err
	}
	return removeAgents(ctx, c.situation.host)
}

// checkAllKnown returns an error for what may be left because it could not be read.
func (c cleanup) checkAllKnown(p plan.Plan, observed plan.Observed) error {
	var errs []error
	for _, id := range p.Unknown {
		errs = append(errs, fmt.Errorf("%s: %s", id, observed.Settings[id].Unknown))
	}
	for _, b := range c.situation.records.OwnedBundles() {
		if len(b.Cluster.Networks)+len(b.Node.Networks) > 0 {
			return errors.Join(append(errs, c.situation.checkNetworks())...)
		}
	}
	return errors.Join(errs...)
}

// doSteps does what it can and returns what failed: one file that another program keeps open does not stop the rest.
func (c cleanup) doSteps(ctx context.Context, p plan.Plan) error {
	var errs []error
	for _, s := range p.Steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		do := c.steps.doStep
		if s.Verb == protocol.VerbClear {
			do = func(ctx context.Context, s plan.Step) error { return removeTree(ctx, c.situation.host, s.File.Path) }
		}
		if err := do(ctx, s); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", s.Verb, s.Entry, err))
			continue
		}
		c.progress.countAction(s.Action)
	}
	return errors.Join(errs...)
}

// listAllState returns what programs of our bundles wrote and made.
func (c cleanup) listAllState(ctx context.Context) (plan.Stale, error) {
	var all plan.Stale
	for _, b := range c.situation.records.OwnedBundles() {
		for _, l := range b.Layers() {
			for _, state := range l.State {
				there, err := statePaths(ctx, c.situation.host, state)
				if err != nil {
					return plan.Stale{}, err
				}
				all.Paths = append(all.Paths, there...)
			}
			for _, n := range l.Networks {
				if c.situation.facts.Network(n.Name).Name != "" {
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
func removeRecords(ctx context.Context, host Host) error {
	for _, path := range []string{
		records.DirContents, records.DirPrevious, records.FileCache, records.FileConfirm, records.FileStaged,
		records.FileUndone, records.FileAccepted, records.FileSigners, records.FileBoots, records.FileJournal, records.FileLedger,
	} {
		if err := removeTree(ctx, host, path); err != nil {
			return fmt.Errorf("removing %s: %w", path, records.HideContentName(err))
		}
	}
	return nil
}
