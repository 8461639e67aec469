package applier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// repairing is a repair of the bundle that was applied last. Nothing is rolled back: what differs is drift.
//
//	plan --> without what cannot be done --> folders, settings, files --> plan without what failed --> services, removals
type repairing struct {
	*run
	target   *plan.Target
	observed plan.Observed
	// circumstances.Skip are the entries that stay as they are: those that failed, now or lately.
	circumstances plan.Circumstances
	failed        map[bundle.EntryID]error
	// missing are the contents that steps would need.
	missing []plan.Missing
}

// repairEntries repairs what differs from a bundle whose contents are in the store.
func (r *run) repairEntries(ctx context.Context, record records.BundleRecord) error {
	now := r.Clock.Now()
	w := &repairing{run: r, target: r.situation.target(record), failed: map[bundle.EntryID]error{}}
	var err error
	if w.observed, w.circumstances, err = r.survey(ctx, r.situation, w.target, record, r.options.Full); err != nil {
		return err
	}
	w.circumstances.Skip = r.Backoff.paused(now)
	w.circumstances.Restart = slices.Concat(w.circumstances.Restart, r.options.Restart)
	p, err := w.possible(ctx)
	if err != nil {
		return err
	}
	skipped := slices.DeleteFunc(slices.Clone(p.Skipped), func(id bundle.EntryID) bool { return w.failed[id] != nil })
	defer func() {
		if ctx.Err() == nil {
			r.Backoff.learn(now, w.failed, skipped)
		}
	}()
	r.announce(p, record)
	r.sweepLeftovers(ctx, p)
	r.pending, r.observed = p.Pending, w.observed
	if err := Allowed(p.Impact(), r.limit()); err != nil {
		return err
	}
	switch {
	case len(p.Steps) == 0 && len(w.missing) > 0 && !r.situation.Interrupted:
		return &RefusedError{Why: fmt.Sprintf("%s missing or corrupt, the first is %s: send them again", bundle.Count(len(w.missing), "content"), w.missing[0].Digest), Missing: w.missing}
	case len(p.Steps) == 0 && !r.situation.Interrupted && len(w.failed)+len(skipped) > 0:
		return w.unrepaired(skipped)
	case len(p.Steps) == 0 && !r.situation.Interrupted:
		r.result = ResultSame
		if err := r.record(ctx, record, p, w.target); err != nil {
			return err
		}
		return r.reboot(ctx)
	case len(p.Steps) == 0 && p.Reboot && r.awaitsBoot(record):
		r.result = ResultReboot
		return r.reboot(ctx)
	}
	return w.do(ctx, record, p, skipped)
}

// possible returns the plan without the steps whose contents are missing or corrupt.
func (w *repairing) possible(ctx context.Context) (plan.Plan, error) {
	p := plan.Make(w.target, w.observed, w.circumstances)
	if err := w.keepCurrent(ctx, p); err != nil {
		return plan.Plan{}, err
	}
	right := map[string]bool{}
	for _, n := range contents(p) {
		sum := n.Content.SHA256
		whole := sum != "" && n.Content.Size >= 0
		if whole {
			var err error
			if whole, err = w.situation.Store.Verify(ctx, n.Content); err != nil {
				return plan.Plan{}, fmt.Errorf("reading kept content %s: %w", n.Digest, err)
			}
		}
		if right[sum] = whole; !whole {
			w.missing = append(w.missing, plan.Missing{Digest: n.Digest, Parts: w.situation.Store.PartsOf(sum)})
		}
	}
	for _, s := range p.Steps {
		for _, n := range s.Needs() {
			if !right[n.Content.SHA256] {
				w.fails(s.Entry, errors.New("its content is not kept here, or is corrupt"))
			}
		}
	}
	if err := writable(p, w.observed); err != nil {
		for _, s := range p.Steps {
			if s.Verb == plan.VerbWrite && slices.Contains(w.observed.Unread, s.File.Path) {
				w.fails(s.Entry, err)
			}
		}
	}
	return plan.Make(w.target, w.observed, w.circumstances), nil
}

// fails leaves an entry as it is.
func (w *repairing) fails(id bundle.EntryID, why error) {
	w.circumstances.Skip[id] = true
	if w.failed[id] == nil {
		w.failed[id] = why
		w.note(fmt.Sprintf("%s is not repaired: %v", id, why))
	}
}

// do does the steps of a plan: first those that need no service to stop, then, for what has not failed, the others.
func (w *repairing) do(ctx context.Context, record records.BundleRecord, p plan.Plan, skipped []bundle.EntryID) error {
	quiet, rest := split(p.Steps)
	p.Steps = slices.Concat(quiet, rest)
	if err := w.begin(ctx, record, p, w.observed, w.target); err != nil {
		return err
	}
	if err := w.each(ctx, quiet); err != nil {
		return err
	}
	again := plan.Make(w.target, w.observed, w.circumstances)
	_, rest = split(again.Steps)
	if err := w.each(ctx, rest); err != nil {
		return err
	}
	if again.Reboot {
		return w.awaitBoot(ctx)
	}
	var service *ServiceError
	if err := w.healthy(ctx, w.target); errors.As(err, &service) {
		w.fails(bundle.KindService.ID(service.Name), err)
	} else if err != nil {
		return err
	}
	w.sweepAfter(ctx, p)
	if len(w.failed)+len(skipped) > 0 {
		if err := w.forget(ctx); err != nil {
			return err
		}
		return w.unrepaired(skipped)
	}
	w.result = ResultApplied
	return w.record(ctx, record, p, w.target)
}

// split returns the steps that need no service to stop, as files are replaced and never changed in place, and the others.
func split(steps []plan.Step) (quiet, rest []plan.Step) {
	for _, s := range steps {
		switch {
		case s.Verb == plan.VerbMake, s.Verb == plan.VerbWrite, s.Verb == plan.VerbRemove && s.Reason == plan.ReasonInWay,
			(s.Verb == plan.VerbSet || s.Verb == plan.VerbUnset) && s.Setting.Kind != bundle.KindEndpoint && s.Setting.Kind != bundle.KindNetwork:
			quiet = append(quiet, s)
		default:
			rest = append(rest, s)
		}
	}
	return quiet, rest
}

// each does steps, also behind one that fails.
func (w *repairing) each(ctx context.Context, steps []plan.Step) error {
	for _, s := range steps {
		if w.failed[s.Entry] != nil && s.Verb != plan.VerbStart {
			continue
		}
		err := w.run.do(ctx, s)
		if ctx.Err() != nil {
			return &PartialError{Err: fmt.Errorf("interrupted: %w", ctx.Err())}
		}
		if err != nil {
			w.fails(s.Entry, err)
			continue
		}
		w.done++
		w.emit(Event{Event: EventAction, Action: &s.Action, Done: w.done, Total: w.total})
	}
	return nil
}

// unrepaired returns the error of a repair after which something still differs. It is the same for as long as that is the same.
func (w *repairing) unrepaired(skipped []bundle.EntryID) error {
	why := maps.Clone(w.failed)
	for _, id := range skipped {
		why[id] = w.Backoff.failures[id].why
	}
	first := slices.Min(slices.Collect(maps.Keys(why)))
	return &PartialError{Err: fmt.Errorf("%s not repaired, the first is %s: %w", bundle.Count(len(why), "difference"), first, why[first])}
}
