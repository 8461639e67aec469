package applier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// repairing is a repair of the bundle that was applied last. Nothing is rolled back: what differs is drift.
//
//	plan --> without what cannot be done --> folders, settings, files --> plan without what failed --> services, removals
type repairing struct {
	run      *run
	target   *plan.Target
	observed plan.Observed
	// circumstances.Skip are the entries that stay as they are: those that failed, now or lately.
	circumstances plan.Circumstances
	failed        map[bundle.EntryID]error
	// missing are the contents that steps would need.
	missing []protocol.Missing
}

// repairEntries repairs what differs from a bundle whose contents are in the store.
func (r *run) repairEntries(ctx context.Context, record records.BundleRecord) error {
	now := r.engine.Clock.Now()
	w := &repairing{run: r, target: r.situation.targetOf(record), failed: map[bundle.EntryID]error{}}
	var err error
	if w.observed, w.circumstances, err = r.situation.surveyHost(ctx, w.target, record, r.options.Full); err != nil {
		return err
	}
	w.circumstances.Skip = r.engine.Backoff.pausedEntries(now)
	w.circumstances.Restart = slices.Concat(w.circumstances.Restart, r.options.Restart)
	w.skipUnknown()
	p, err := w.possiblePlan(ctx)
	if err != nil {
		return err
	}
	skipped := slices.DeleteFunc(slices.Clone(p.Skipped), func(id bundle.EntryID) bool { return w.failed[id] != nil })
	defer func() {
		if ctx.Err() == nil {
			r.engine.Backoff.noteRepair(now, w.failed, skipped)
		}
	}()
	r.progress.showPlan(p, record.Manifest.Digest, r.records.Notes)
	sweepLeftovers(ctx, r.engine.Host, p)
	r.progress.pending, r.observed = p.Pending, w.observed
	if err := CheckImpact(p.HighestImpact(), r.impactLimit()); err != nil {
		return err
	}
	switch {
	case len(p.Steps) == 0 && len(w.missing) > 0 && !r.records.Interrupted:
		return &RefusedError{Why: fmt.Sprintf("%s missing or corrupt, the first is %s: send them again",
			bundle.Count(len(w.missing), "content"), w.missing[0].Digest), Missing: w.missing}
	case len(p.Steps) == 0 && !r.records.Interrupted && len(w.failed)+len(skipped) > 0:
		return w.unrepairedError(skipped)
	case len(p.Steps) == 0 && !r.records.Interrupted:
		r.progress.result = protocol.ResultSame
		if err := r.writeLedger(ctx, record, p, w.target); err != nil {
			return err
		}
		return r.rebootHost(ctx)
	case len(p.Steps) == 0 && p.Reboot && r.awaitsBoot(record):
		r.progress.result = protocol.ResultReboot
		return r.rebootHost(ctx)
	}
	return w.repairSteps(ctx, record, p, skipped)
}

// possiblePlan returns the plan without the steps whose contents are missing or corrupt.
func (w *repairing) possiblePlan(ctx context.Context) (plan.Plan, error) {
	p := plan.Make(w.target, w.observed, w.circumstances)
	if err := keepCurrent(ctx, w.run.records.Store, p); err != nil {
		return plan.Plan{}, err
	}
	right := map[string]bool{}
	for _, n := range contentsOfPlan(p) {
		sum := n.Content.SHA256
		whole := sum != "" && n.Content.Size >= 0
		if whole {
			var err error
			if whole, err = w.run.records.Store.VerifyContent(ctx, n.Content); err != nil {
				return plan.Plan{}, fmt.Errorf("reading kept content %s: %w", n.Digest, err)
			}
		}
		if right[sum] = whole; !whole {
			w.missing = append(w.missing, protocol.Missing{Digest: n.Digest, Parts: w.run.records.Store.PartsOf(sum)})
		}
	}
	for _, s := range p.Steps {
		for _, n := range s.NeededContents() {
			if !right[n.Content.SHA256] {
				w.skipEntry(s.Entry, errors.New("its content is not kept here, or is corrupt"))
			}
		}
	}
	if err := checkWritable(p, w.observed); err != nil {
		for _, s := range p.Steps {
			if s.Verb == protocol.VerbWrite && slices.Contains(w.observed.Unread, s.File.Path) {
				w.skipEntry(s.Entry, err)
			}
		}
	}
	return plan.Make(w.target, w.observed, w.circumstances), nil
}

// skipUnknown leaves the settings as they are that could not be read. Everything else is repaired.
func (w *repairing) skipUnknown() {
	for _, s := range w.target.Settings {
		if why := w.observed.Settings[s.ID()].Unknown; why != "" {
			w.run.progress.noteUnknown(s.ID(), why)
		}
	}
}

// skipEntry leaves an entry as it is.
func (w *repairing) skipEntry(id bundle.EntryID, why error) {
	w.circumstances.Skip[id] = true
	if w.failed[id] == nil {
		w.failed[id] = why
		w.run.progress.addNote(fmt.Sprintf("%s is not repaired: %v", id, why))
	}
}

// repairSteps does the steps of a plan: first those that need no service to stop, then, for what has not failed, the
// others.
func (w *repairing) repairSteps(ctx context.Context, record records.BundleRecord, p plan.Plan, skipped []bundle.EntryID) error {
	quiet, rest := splitQuietSteps(p.Steps)
	p.Steps = slices.Concat(quiet, rest)
	if err := w.run.beginRun(ctx, record, p, w.observed, w.target); err != nil {
		return err
	}
	if err := w.doEachStep(ctx, quiet); err != nil {
		return err
	}
	again := plan.Make(w.target, w.observed, w.circumstances)
	_, rest = splitQuietSteps(again.Steps)
	if err := w.doEachStep(ctx, rest); err != nil {
		return err
	}
	if again.Reboot {
		return w.run.awaitBoot(ctx)
	}
	var service *ServiceError
	if err := w.run.health.awaitStarted(ctx, w.target, w.run.records.Journal.Starts); errors.As(err, &service) {
		w.skipEntry(bundle.KindService.ID(service.Name), err)
	} else if err != nil {
		return err
	}
	sweepAfter(ctx, w.run.engine.Host, p)
	if len(w.failed)+len(skipped) > 0 {
		if err := w.run.records.RemoveJournal(ctx); err != nil {
			return err
		}
		return w.unrepairedError(skipped)
	}
	w.run.progress.result = protocol.ResultApplied
	if err := w.run.writeLedger(ctx, record, p, w.target); err != nil {
		return err
	}
	return w.run.rebootHost(ctx)
}

// splitQuietSteps returns the steps that need no service to stop, as files are replaced and never changed in place, and
// the others.
func splitQuietSteps(steps []plan.Step) (quiet, rest []plan.Step) {
	for _, s := range steps {
		switch {
		case s.Verb == protocol.VerbMake, s.Verb == protocol.VerbWrite, s.Verb == protocol.VerbRemove && s.Reason == protocol.ReasonInWay,
			(s.Verb == protocol.VerbSet || s.Verb == protocol.VerbUnset) &&
				s.Setting.Kind != bundle.KindEndpoint && s.Setting.Kind != bundle.KindNetwork:
			quiet = append(quiet, s)
		default:
			rest = append(rest, s)
		}
	}
	return quiet, rest
}

// doEachStep does steps, also behind one that fails.
func (w *repairing) doEachStep(ctx context.Context, steps []plan.Step) error {
	for _, s := range steps {
		if w.failed[s.Entry] != nil && s.Verb != protocol.VerbStart {
			continue
		}
		err := w.run.steps.doStep(ctx, s)
		if ctx.Err() != nil {
			return &PartialError{Err: fmt.Errorf("interrupted: %w", ctx.Err())}
		}
		if err != nil {
			w.skipEntry(s.Entry, err)
			continue
		}
		w.run.progress.countAction(s.Action)
	}
	return nil
}

// unrepairedError returns the error of a repair after which something still differs. It is the same for as long as that
// is the same.
func (w *repairing) unrepairedError(skipped []bundle.EntryID) error {
	why := maps.Clone(w.failed)
	for _, id := range skipped {
		why[id] = w.run.engine.Backoff.failures[id].why
	}
	first := slices.Min(slices.Collect(maps.Keys(why)))
	return &PartialError{Err: fmt.Errorf("%s not repaired, the first is %s: %w", bundle.Count(len(why), "difference"), first, why[first])}
}
