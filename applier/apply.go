package applier

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/count"
)

// RefusedError says that nothing was done because of what was asked.
type RefusedError struct {
	Why     string
	Missing []Missing
}

func (e *RefusedError) Error() string { return e.Why }

// Allowed refuses a plan that costs more than the limit, as a *RefusedError. No limit allows everything.
func Allowed(plan, limit bundle.Impact) error {
	if limit == "" || plan.Rank() <= limit.Rank() {
		return nil
	}
	return &RefusedError{Why: fmt.Sprintf("the plan has impact %s, allowed is %s", plan, limit)}
}

// RolledBackError says that the bundle did not work and that the host is as it was.
type RolledBackError struct{ Err error }

func (e *RolledBackError) Error() string { return "rolled back: " + e.Err.Error() }

func (e *RolledBackError) Unwrap() error { return e.Err }

// PartialError says that an application was left in the middle. The next run takes it up.
type PartialError struct{ Err error }

func (e *PartialError) Error() string { return "applied in part: " + e.Err.Error() }

func (e *PartialError) Unwrap() error { return e.Err }

// Apply brings the host to the bundle that the archive holds. The error is a *LockedError, a *RefusedError, a
// *bundle.SchemaError, a *RolledBackError or a *PartialError, or what kept the engine from starting at all; the outcome's
// event is sent as well.
func (e *Engine) Apply(ctx context.Context, r *archive.Reader, o Options) (Outcome, error) {
	run := &run{Engine: e, options: o}
	if err := acceptable(r.Manifest); err != nil {
		return run.ends(r.Manifest.Digest, err)
	}
	if o.DryRun {
		return run.ends(r.Manifest.Digest, run.dry(ctx, r))
	}
	release, err := e.lock(ctx, o.LockWait)
	if err != nil {
		return run.ends(r.Manifest.Digest, err)
	}
	err = run.receive(ctx, r)
	if err == nil {
		err = run.converge(ctx, bundleRecord{Manifest: r.Manifest, Contents: r.Contents})
	}
	return run.ends(r.Manifest.Digest, errors.Join(err, release()))
}

// acceptable tells why a manifest cannot be applied to any machine, as a *RefusedError.
func acceptable(m bundle.Manifest) error {
	if masked(m) {
		return &RefusedError{Why: "the manifest is a preview: its secrets are masked"}
	}
	if err := checkRoots(bundleRecord{Manifest: m}.bundle()); err != nil {
		return &RefusedError{Why: err.Error()}
	}
	return nil
}

// masked tells whether a manifest is that of a preview.
func masked(m bundle.Manifest) bool {
	isMasked := func(v bundle.Variable) bool { return v.Digest == bundle.Masked }
	for _, l := range m.Layers {
		files := slices.ContainsFunc(l.Layer.Files, func(f bundle.File) bool { return f.Digest == bundle.Masked })
		services := slices.ContainsFunc(l.Layer.Environments, func(e bundle.Environment) bool { return slices.ContainsFunc(e.Variables, isMasked) })
		if files || services || slices.ContainsFunc(l.Layer.Variables, isMasked) {
			return true
		}
	}
	return false
}

// run is one application.
type run struct {
	*Engine
	options Options
	s       *situation
	// seen is what was observed before the first action.
	seen observed
	// shadows are the variables that services get as empty.
	shadows []string
	// applying tells that the journal is written: from here on an end without result is a cut.
	applying bool

	total, done, written, restarted int
	result                          Result
	pending                         []bundle.EntryID
	restartSelf                     bool
}

func (r *run) emit(event Event) {
	event.Schema, event.Time = Schema, r.Clock.Now()
	if r.Emit != nil {
		r.Emit(event)
	}
}

func (r *run) note(message string) { r.emit(Event{Event: EventNote, Message: message}) }

// ends turns an error into the last event.
func (r *run) ends(d bundle.Digest, err error) (Outcome, error) {
	event := Event{
		Event: EventResult, Bundle: d, Result: r.result, Done: r.done, Total: r.total, Written: r.written, Restarted: r.restarted,
		RebootPending: r.pending,
	}
	var refused *RefusedError
	var back *RolledBackError
	var partial *PartialError
	switch {
	case err == nil:
	case errors.As(err, &back):
		event.Result = ResultRolledBack
	case errors.As(err, &partial) || r.applying:
		event.Result = ResultPartial
		if partial == nil {
			err = &PartialError{Err: err}
		}
	case isFault(err):
		event.Result = ResultPartial
	default:
		event.Result = ResultRefused
		if errors.As(err, &refused) {
			event.Missing = refused.Missing
		}
	}
	if err != nil {
		event.Message = err.Error()
	}
	r.emit(event)
	return Outcome{Event: event, RestartSelf: r.restartSelf}, err
}

// isFault tells whether the host, and not what was asked, is the reason that nothing was done.
func isFault(err error) bool {
	var file *FileError
	var service *ServiceError
	var locked *LockedError
	return errors.As(err, &file) || errors.As(err, &service) || errors.As(err, &locked)
}

// dry plans and says so.
func (r *run) dry(ctx context.Context, a *archive.Reader) error {
	var err error
	if r.s, err = r.load(ctx); err != nil {
		return err
	}
	return r.preview(ctx, bundleRecord{Manifest: a.Manifest, Contents: a.Contents})
}

// preview is converge, stopped before the first write.
func (r *run) preview(ctx context.Context, record bundleRecord) error {
	_, p, err := r.look(ctx, r.s, r.s.want(record), record, r.options.Full)
	if err != nil {
		return err
	}
	r.result, r.pending = ResultPlanned, p.pending
	r.announce(p, record)
	for _, s := range p.steps {
		r.emit(Event{Event: EventAction, Action: &s.Action, Total: r.total})
	}
	return r.allowed(p)
}

func (r *run) announce(p plan, record bundleRecord) {
	r.total = len(p.steps)
	for _, n := range r.s.notes {
		r.note(n)
	}
	r.emit(Event{Event: EventPlan, Bundle: record.Manifest.Digest, Total: r.total, Impact: p.impact(), Message: p.summary()})
}

func (p plan) summary() string {
	text := fmt.Sprintf("%s, impact %s", count.Of(len(p.steps), "action"), p.impact())
	if names := p.restarts(); len(names) > 0 {
		text += ", restarts " + strings.Join(names, ", ")
	}
	return text
}

// prepare makes the folders of our own.
func (e *Engine) prepare(ctx context.Context) error {
	wanted := []struct {
		path   string
		access bundle.Access
	}{
		{bundle.Dir(StateFolder), bundle.AccessUsers},
		{StateFolder, bundle.AccessAdmins},
		{dirContents, bundle.AccessAdmins},
		{dirPrevious, bundle.AccessAdmins},
	}
	var paths []string
	for _, w := range wanted {
		paths = append(paths, w.path)
	}
	have, err := e.Host.Stat(ctx, paths)
	if err != nil {
		return fmt.Errorf("observing %s: %w", StateFolder, err)
	}
	for i, w := range wanted {
		ours := have[i].Kind == FileDirectory && (i == 0 || have[i].Access == "" || have[i].Access == w.access)
		if ours {
			continue
		}
		if err := e.Host.MakeDirectory(ctx, w.path, w.access); err != nil {
			return fmt.Errorf("making %s: %w", w.path, err)
		}
	}
	return nil
}

// allowed refuses a plan that costs more than it may or that lacks contents.
func (r *run) allowed(p plan) error {
	if err := Allowed(p.impact(), r.options.MaxImpact); err != nil {
		return err
	}
	if len(p.missing) > 0 && !r.options.DryRun {
		return &RefusedError{Why: fmt.Sprintf("%s missing, the first is %s: send them", count.Of(len(p.missing), "content"), p.missing[0].Digest), Missing: p.missing}
	}
	return nil
}

// converge brings the host to a bundle whose contents are in the store.
func (r *run) converge(ctx context.Context, record bundleRecord) error {
	t := r.s.want(record)
	seen, p, err := r.look(ctx, r.s, t, record, r.options.Full)
	if err != nil {
		return err
	}
	r.announce(p, record)
	if err := r.allowed(p); err != nil {
		return err
	}
	if err := r.packOwn(ctx, p); err != nil {
		return err
	}
	if err := r.rotten(ctx, p); err != nil {
		return err
	}
	r.sweepLeftovers(ctx, p)
	r.pending, r.seen = p.pending, seen
	if len(p.steps) == 0 && !r.s.cut {
		r.result = ResultSame
		if err := r.record(ctx, record, p, t); err != nil {
			return err
		}
		return r.reboot(ctx)
	}
	if len(p.steps) == 0 && p.reboot && r.awaits(record) {
		r.result = ResultReboot
		return r.reboot(ctx)
	}
	if err := r.begin(ctx, record, p, seen, t); err != nil {
		return err
	}
	if err := r.carryOut(ctx, p); err != nil {
		return r.undo(ctx, err)
	}
	if p.reboot {
		return r.awaitBoot(ctx)
	}
	if err := r.healthy(ctx, t); err != nil {
		return r.undo(ctx, err)
	}
	if err := r.confirm(ctx); err != nil {
		return r.undo(ctx, err)
	}
	r.sweepAfter(ctx, p)
	r.result = ResultApplied
	return r.record(ctx, record, p, t)
}

// sweepLeftovers removes what cuts left behind. A program that still runs stays until another time.
func (r *run) sweepLeftovers(ctx context.Context, p plan) {
	for _, path := range p.leftovers {
		_ = r.Host.Remove(ctx, path)
	}
}

// sweepAfter removes the programs that steps moved aside because they ran.
func (r *run) sweepAfter(ctx context.Context, p plan) {
	folders := map[string]bool{}
	for _, s := range p.steps {
		if s.Verb == VerbWrite || s.Verb == VerbRemove {
			folders[bundle.Dir(s.file.path)] = true
		}
	}
	for dir := range folders {
		infos, err := r.Host.List(ctx, dir)
		if err != nil {
			continue
		}
		for _, f := range infos {
			if Leftover(f.Path) {
				_ = r.Host.Remove(ctx, f.Path)
			}
		}
	}
}

// carryOut does the steps in order.
func (r *run) carryOut(ctx context.Context, p plan) error {
	for steps := p.steps; len(steps) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := together(steps)
		if err := r.doAll(ctx, steps[:n]); err != nil {
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

// together is how many steps from the first one on are done at once: files that are written one after another, when they
// are large enough for more than one processor. One file does not need another.
func together(steps []step) int {
	n, size := 0, int64(0)
	for n < len(steps) && steps[n].Verb == VerbWrite && size < batchSize {
		size += steps[n].Size
		n++
	}
	if size < batchSize {
		return 1
	}
	return n
}

// batchSize is how many bytes of files are written at once.
const batchSize = 64 << 20

// doAll does one step, or several files on all processors.
func (r *run) doAll(ctx context.Context, steps []step) error {
	if len(steps) == 1 {
		return told(steps[0], r.do(ctx, steps[0]))
	}
	errs := make([]error, len(steps))
	var work sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i, s := range steps {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			errs[i] = r.write(ctx, s.file)
		})
	}
	work.Wait()
	r.written += len(steps)
	for i, s := range steps {
		errs[i] = told(s, r.s.store.reject(ctx, s.file.content.SHA256, errs[i]))
	}
	return errors.Join(errs...)
}

// told names the step that an error comes from.
func told(s step, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", s.Verb, s.Entry, err)
}
