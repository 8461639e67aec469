package applier

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// Apply brings the host to the bundle of the manifest. The error is a *LockedError, a *RefusedError, a *bundle.SchemaError, a
// *RolledBackError, a *PartialError or a *FaultError, or is of the source of the contents. The outcome's event is sent as well.
func (e *Engine) Apply(ctx context.Context, m bundle.Manifest, from ContentSource, o Options) (Outcome, error) {
	run := &run{Engine: e, options: o}
	record, err := e.admitBundle(m, from.Contents())
	if err != nil {
		return run.ends(m.Digest, err)
	}
	if o.DryRun {
		return run.ends(m.Digest, run.dry(ctx, record))
	}
	release, err := run.lock(ctx)
	if err != nil {
		return run.ends(m.Digest, err)
	}
	err = run.receive(ctx, record, from)
	if err == nil {
		err = run.converge(ctx, record)
	}
	run.unlock(release)
	return run.ends(m.Digest, err)
}

// run is one run of the engine.
type run struct {
	*Engine
	options Options
	// repairs reports whether the run repairs what differs, and not a caller who wants a bundle applied.
	repairs   bool
	situation *situation
	// observed is the host before the first action.
	observed plan.Observed
	// shadows are the variables that services get with an empty value.
	shadows []string
	// applying reports whether the journal is written: from here on, a run that ends without a result was interrupted.
	applying bool

	total, done, written, restarted int
	result                          Result
	pending                         []bundle.EntryID
	restartSelf                     bool
	// resumed reports whether another process began the run, agreed whether it is confirmed.
	resumed, agreed bool
}

func (r *run) emit(event Event) {
	event.Schema, event.Time = Schema, r.Clock.Now()
	if r.Emit != nil {
		r.Emit(event)
	}
}

func (r *run) note(message string) { r.emit(Event{Event: EventNote, Message: message}) }

// ends returns the outcome and sends the last event.
func (r *run) ends(d bundle.Digest, err error) (Outcome, error) {
	event := Event{
		Event: EventResult, Bundle: d, Result: r.result, Done: r.done, Total: r.total, Written: r.written, Restarted: r.restarted,
		RebootPending: r.pending,
	}
	var refused *RefusedError
	var back *RolledBackError
	var partial *PartialError
	if errors.As(err, &refused) {
		event.Missing = refused.Missing
	}
	if locked := (*LockedError)(nil); errors.As(err, &locked) && !r.applying {
		event.LockedBy = locked.Owner
	}
	switch {
	case err == nil:
	case errors.As(err, &back):
		event.Result = ResultRolledBack
	case errors.As(err, &partial) || r.applying:
		event.Result = ResultPartial
		if partial == nil {
			err = &PartialError{Err: err}
		}
	case isRefusal(err):
		event.Result = ResultRefused
	default:
		event.Result, err = ResultPartial, asFault(err)
	}
	if err != nil {
		event.Message, event.DiskFull = err.Error(), errors.Is(err, ErrDiskFull)
	}
	r.emit(event)
	return Outcome{Event: event, RestartSelf: r.restartSelf, Resumed: r.resumed}, err
}

// dry plans and reports the plan.
func (r *run) dry(ctx context.Context, record records.BundleRecord) error {
	var err error
	if r.situation, err = r.load(ctx); err != nil {
		return err
	}
	if err := r.checkNode(ctx, r.situation, record.Manifest); err != nil {
		return err
	}
	return r.preview(ctx, record)
}

// preview is converge, stopped before the first write.
func (r *run) preview(ctx context.Context, record records.BundleRecord) error {
	_, p, err := r.observe(ctx, r.situation, r.situation.target(record), record, r.options.Full)
	if err != nil {
		return err
	}
	if err := r.situation.addCorrupt(ctx, &p); err != nil {
		return err
	}
	r.result, r.pending = ResultPlanned, p.Pending
	r.announce(p, record)
	for _, s := range p.Steps {
		r.emit(Event{Event: EventAction, Action: &s.Action, Total: r.total})
	}
	return r.allowed(p)
}

func (r *run) announce(p plan.Plan, record records.BundleRecord) {
	r.total = len(p.Steps)
	for _, n := range r.situation.Notes {
		r.note(n)
	}
	r.emit(Event{Event: EventPlan, Bundle: record.Manifest.Digest, Total: r.total, Impact: p.Impact(), Message: p.Summary()})
}

// open loads the records, and removes what interrupted runs left of them.
func (r *run) open(ctx context.Context) (err error) {
	if r.situation, err = r.load(ctx); err != nil || r.options.DryRun {
		return err
	}
	var file *FileError // a program that still runs stays until another time
	if err := r.situation.SweepLeftovers(ctx); err != nil && !errors.As(err, &file) {
		return err
	}
	if r.situation.Finished {
		return r.situation.EndRun(ctx)
	}
	return nil
}

// abandonedAfter is how long a content that no run needs is kept when the host is repaired: its transfer may have been
// interrupted, and its sender comes back.
const abandonedAfter = time.Hour

// abandoned returns the time since which contents were written that are kept although no run needs them.
func (r *run) abandoned() time.Time {
	if !r.repairs {
		return time.Time{}
	}
	return r.Clock.Now().Add(-abandonedAfter)
}

// prepare makes the folders of the records.
func (e *Engine) prepare(ctx context.Context) error {
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

// allowed refuses a plan whose impact is too high or that lacks contents.
func (r *run) allowed(p plan.Plan) error {
	if err := Allowed(p.Impact(), r.limit()); err != nil {
		return err
	}
	if len(p.Missing) > 0 && !r.options.DryRun {
		return &RefusedError{Why: fmt.Sprintf("%s missing, the first is %s: send them", bundle.Count(len(p.Missing), "content"), p.Missing[0].Digest), Missing: p.Missing}
	}
	return nil
}

// limit returns the highest impact that is allowed. What was allowed for a run holds for the process that resumes it: the
// host is between two bundles, and rolling back costs no less.
func (r *run) limit() bundle.Impact {
	if j := r.situation.Journal; r.repairs && j.Allowed != "" && j.Allowed.Rank() > r.options.MaxImpact.Rank() {
		return j.Allowed
	}
	return r.options.MaxImpact
}

// converge brings the host to a bundle whose contents are in the store.
func (r *run) converge(ctx context.Context, record records.BundleRecord) error {
	if err := r.takeOver(ctx, record.Manifest.Digest); err != nil {
		return err
	}
	if r.options.OnlyChanges {
		r.situation.limitTo(record)
	}
	t := r.situation.target(record)
	observed, p, err := r.observe(ctx, r.situation, t, record, r.options.Full)
	if err != nil {
		return err
	}
	r.announce(p, record)
	if err := r.allowed(p); err != nil {
		return err
	}
	if err := writable(p, observed); err != nil {
		return err
	}
	if err := r.keepCurrent(ctx, p); err != nil {
		return err
	}
	if err := r.checkContents(ctx, p); err != nil {
		return err
	}
	r.sweepLeftovers(ctx, p)
	r.pending, r.observed = p.Pending, observed
	if len(p.Steps) == 0 && !r.situation.Interrupted {
		r.result = ResultSame
		if err := r.record(ctx, record, p, t); err != nil {
			return err
		}
		return r.reboot(ctx)
	}
	steps, swap := r.withoutSelf(p, observed)
	if len(steps.Steps) == 0 && p.Reboot && r.awaitsBoot(record) {
		r.result = ResultReboot
		return r.reboot(ctx)
	}
	if err := r.begin(ctx, record, p, observed, t); err != nil {
		return err
	}
	if err := r.change(ctx, steps, swap, observed); err != nil {
		return r.undo(ctx, err)
	}
	if p.Reboot {
		return r.awaitBoot(ctx)
	}
	if err := r.healthy(ctx, t); err != nil {
		return r.undo(ctx, err)
	}
	if err := r.confirm(ctx); err != nil {
		return r.undo(ctx, err)
	}
	r.sweepAfter(ctx, p)
	if swap == nil {
		r.result = ResultApplied
		return r.record(ctx, record, p, t)
	}
	return r.handOver(ctx, *swap)
}

// sweepLeftovers removes what interruptions left behind. A program that still runs stays until another time.
func (r *run) sweepLeftovers(ctx context.Context, p plan.Plan) {
	for _, path := range p.Leftovers {
		_ = r.Host.Remove(ctx, path)
	}
}

// sweepAfter removes the programs that steps moved aside because they were running.
func (r *run) sweepAfter(ctx context.Context, p plan.Plan) {
	folders := map[string]bool{}
	for _, s := range p.Steps {
		if s.Verb == plan.VerbWrite || s.Verb == plan.VerbRemove {
			folders[bundle.Dir(s.File.Path)] = true
		}
	}
	for dir := range folders {
		infos, err := r.Host.List(ctx, dir)
		if err != nil {
			continue
		}
		for _, f := range infos {
			if plan.Leftover(f.Path) {
				_ = r.Host.Remove(ctx, f.Path)
			}
		}
	}
}

// doSteps does the steps in order.
func (r *run) doSteps(ctx context.Context, p plan.Plan) error {
	for steps := p.Steps; len(steps) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := batch(steps)
		if err := r.doBatch(ctx, steps[:n]); err != nil {
			return err
		}
		for _, s := range steps[:n] {
			r.done++
			r.emit(Event{Event: EventAction, Action: &s.Action, Done: r.done, Total: r.total})
		}
		steps = steps[n:]
	}
	return nil
}

// batch returns the number of steps, from the first one on, that are done at once: files that follow each other in the
// plan and are large enough for more than one processor.
func batch(steps []plan.Step) int {
	n, size := 0, int64(0)
	for n < len(steps) && steps[n].Verb == plan.VerbWrite && size < batchSize {
		size += steps[n].Size
		n++
	}
	if size < batchSize {
		return 1
	}
	return n
}

// batchSize is the size in bytes of files that are written at once.
const batchSize = 64 << 20

// doBatch does one step, or several files on all processors.
func (r *run) doBatch(ctx context.Context, steps []plan.Step) error {
	if len(steps) == 1 {
		return named(steps[0], r.do(ctx, steps[0]))
	}
	errs := make([]error, len(steps))
	var work sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i, s := range steps {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			errs[i] = r.write(ctx, s.File)
		})
	}
	work.Wait()
	r.written += len(steps)
	for i, s := range steps {
		errs[i] = named(s, r.situation.Store.Reject(ctx, s.File.Content.SHA256, errs[i]))
	}
	return errors.Join(errs...)
}

// named adds the step to an error.
func named(s plan.Step, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", s.Verb, s.Entry, err)
}
