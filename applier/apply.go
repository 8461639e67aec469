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
		return run.endRun(m.Digest, err)
	}
	if o.DryRun {
		return run.endRun(m.Digest, run.dryRun(ctx, record))
	}
	release, err := run.lockAndQuarantine(ctx)
	if err != nil {
		return run.endRun(m.Digest, err)
	}
	err = run.receiveContents(ctx, record, from)
	if err == nil {
		err = run.convergeHost(ctx, record)
	}
	run.releaseLock(release)
	return run.endRun(m.Digest, err)
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
	// log is the end of the log of the service because of which the run is rolled back.
	log bundle.LogTail
	// unknown are the kinds of settings that could not be read, and stay as they are.
	unknown []bundle.UnknownFact
}

func (r *run) emitEvent(e Event) {
	e.Schema, e.Time = Schema, r.Clock.Now()
	if r.Emit != nil {
		r.Emit(e)
	}
}

func (r *run) emitNote(message string) { r.emitEvent(Event{Event: EventNote, Message: message}) }

// endRun returns the outcome and sends the last event.
func (r *run) endRun(d bundle.Digest, err error) (Outcome, error) {
	event := Event{
		Event: EventResult, Bundle: d, Result: r.result, Done: r.done, Total: r.total, Written: r.written, Restarted: r.restarted,
		RebootPending: r.pending, Log: r.log,
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
		event.Result, err = ResultPartial, wrapAsFault(err)
	}
	if err != nil {
		event.Message, event.DiskFull = err.Error(), errors.Is(err, ErrDiskFull)
	}
	r.emitEvent(event)
	return Outcome{Event: event, RestartSelf: r.restartSelf, Resumed: r.resumed, Unknown: r.unknown}, err
}

// dryRun plans and reports the plan.
func (r *run) dryRun(ctx context.Context, record records.BundleRecord) error {
	var err error
	if r.situation, err = r.loadSituation(ctx); err != nil {
		return err
	}
	if err := r.checkNodeName(ctx, r.situation, record.Manifest); err != nil {
		return err
	}
	return r.previewPlan(ctx, record)
}

// previewPlan is convergeHost, stopped before the first write.
func (r *run) previewPlan(ctx context.Context, record records.BundleRecord) error {
	_, p, err := r.observeAndPlan(ctx, r.situation, r.situation.targetOf(record), record, r.options.Full)
	if err != nil {
		return err
	}
	if err := r.situation.addCorrupt(ctx, &p); err != nil {
		return err
	}
	r.result, r.pending = ResultPlanned, p.Pending
	r.emitPlan(p, record)
	for _, s := range p.Steps {
		r.emitEvent(Event{Event: EventAction, Action: &s.Action, Total: r.total})
	}
	if err := r.checkAllowed(p); err != nil {
		return err
	}
	return r.checkKept(ctx, record, p)
}

func (r *run) emitPlan(p plan.Plan, record records.BundleRecord) {
	r.total = len(p.Steps)
	for _, n := range r.situation.Notes {
		r.emitNote(n)
	}
	r.emitEvent(Event{Event: EventPlan, Bundle: record.Manifest.Digest, Total: r.total, Impact: p.HighestImpact(), Message: p.SummaryLine()})
}

// openRecords loads the records, and removes what interrupted runs left of them.
func (r *run) openRecords(ctx context.Context) (err error) {
	if r.situation, err = r.loadSituation(ctx); err != nil || r.options.DryRun {
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

// abandonedSince returns the time since which contents were written that are kept although no run needs them.
func (r *run) abandonedSince() time.Time {
	if !r.repairs {
		return time.Time{}
	}
	return r.Clock.Now().Add(-abandonedAfter)
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
		return &RefusedError{Why: fmt.Sprintf("%s missing, the first is %s: send them", bundle.Count(len(p.Missing), "content"), p.Missing[0].Digest), Missing: p.Missing}
	}
	return nil
}

// impactLimit returns the highest impact that is allowed. What was allowed for a run holds for the process that resumes it: the
// host is between two bundles, and rolling back costs no less.
func (r *run) impactLimit() bundle.Impact {
	if j := r.situation.Journal; r.repairs && j.Allowed != "" && j.Allowed.Rank() > r.options.MaxImpact.Rank() {
		return j.Allowed
	}
	return r.options.MaxImpact
}

// convergeHost brings the host to a bundle whose contents are in the store.
func (r *run) convergeHost(ctx context.Context, record records.BundleRecord) error {
	if err := r.confirmHandover(ctx, record.Manifest.Digest); err != nil {
		return err
	}
	if r.options.OnlyChanges {
		r.situation.limitToChanges(record)
	}
	t := r.situation.targetOf(record)
	observed, p, err := r.observeAndPlan(ctx, r.situation, t, record, r.options.Full)
	if err != nil {
		return err
	}
	r.emitPlan(p, record)
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
	} else if err := r.changeToTarget(ctx, record, p, t); err != nil || r.result != ResultApplied {
		return err
	}
	if err := r.writeLedger(ctx, record, p, t); err != nil {
		return err
	}
	return r.rebootHost(ctx)
}

// changeToTarget makes the host what the target says, and records what it was. The result is ResultApplied where nothing is left to do: a boot
// or the next node agent may have to do the rest.
func (r *run) changeToTarget(ctx context.Context, record records.BundleRecord, p plan.Plan, t *plan.Target) error {
	steps, swap := r.withoutSelf(p, r.observed)
	if len(steps.Steps) == 0 && p.Reboot && r.awaitsBoot(record) {
		r.result = ResultReboot
		return r.rebootHost(ctx)
	}
	if err := r.beginRun(ctx, record, p, r.observed, t); err != nil {
		return err
	}
	if err := r.changeHost(ctx, steps, swap, r.observed); err != nil {
		return r.rollBackChange(ctx, err)
	}
	if p.Reboot {
		return r.awaitBoot(ctx)
	}
	if err := r.awaitHealthy(ctx, t); err != nil {
		return r.rollBackChange(ctx, err)
	}
	if err := r.awaitConfirmation(ctx); err != nil {
		return r.rollBackChange(ctx, err)
	}
	r.sweepAfter(ctx, p)
	if swap != nil {
		return r.handOverService(ctx, *swap)
	}
	r.result = ResultApplied
	return nil
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
			if plan.IsLeftover(f.Path) {
				_ = r.Host.Remove(ctx, f.Path)
			}
		}
	}
}

// doSteps does the steps in order.
func (r *run) doSteps(ctx context.Context, steps []plan.Step) error {
	for len(steps) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := batchLength(steps)
		if err := r.doStepBatch(ctx, steps[:n]); err != nil {
			return err
		}
		for _, s := range steps[:n] {
			r.done++
			r.emitEvent(Event{Event: EventAction, Action: &s.Action, Done: r.done, Total: r.total})
		}
		steps = steps[n:]
	}
	return nil
}

// batchLength returns the number of steps, from the first one on, that are done at once: files that follow each other in the
// plan and are large enough for more than one processor.
func batchLength(steps []plan.Step) int {
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

// doStepBatch does one step, or several files on all processors.
func (r *run) doStepBatch(ctx context.Context, steps []plan.Step) error {
	if len(steps) == 1 {
		return nameStep(steps[0], r.doStep(ctx, steps[0]))
	}
	errs := make([]error, len(steps))
	var work sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i, s := range steps {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			errs[i] = r.writeFile(ctx, s.File)
		})
	}
	work.Wait()
	r.written += len(steps)
	for i, s := range steps {
		errs[i] = nameStep(s, r.situation.Store.RejectCorrupt(ctx, s.File.Content.SHA256, errs[i]))
	}
	return errors.Join(errs...)
}

// nameStep adds the step to an error.
func nameStep(s plan.Step, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", s.Verb, s.Entry, err)
}
