package applier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"wmco/applier/plan"
	"wmco/bundle"
)

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
			r.progress.countAction(s.Action)
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
	r.progress.written += len(steps)
	for i, s := range steps {
		errs[i] = nameStep(s, r.records.Store.RejectCorrupt(ctx, s.File.Content.SHA256, errs[i]))
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

// doStep does one step. Every step can be done twice.
func (r *run) doStep(ctx context.Context, s plan.Step) error {
	switch s.Verb {
	case plan.VerbMake:
		access := cmp.Or(s.File.Access, s.File.Inherited)
		if access == "" || access == plan.AccessOther {
			access = bundle.AccessUsers
		}
		return r.makeFolder(ctx, s.File.Path, access)
	case plan.VerbWrite:
		r.progress.written++
		return r.records.Store.RejectCorrupt(ctx, s.File.Content.SHA256, r.writeFile(ctx, s.File))
	case plan.VerbRemove:
		return r.removeFile(ctx, s.File)
	case plan.VerbClear:
		return r.clearState(ctx, s.File.Path)
	case plan.VerbSet, plan.VerbUnset:
		return r.applySetting(ctx, s)
	case plan.VerbPut:
		return r.configureService(ctx, s.Service)
	case plan.VerbDelete:
		return r.Host.DeleteService(ctx, s.Service.Config.Name)
	case plan.VerbStop:
		return r.stopService(ctx, s.Service)
	case plan.VerbStart:
		return r.startService(ctx, s)
	}
	return fmt.Errorf("unknown verb %q", s.Verb)
}

// stopService records that the service has to be started again, then stops it.
func (r *run) stopService(ctx context.Context, s plan.WantedService) error {
	j := r.records.Journal
	if name := s.Config.Name; s.Run && r.records.Interrupted && !slices.Contains(j.Restart, name) {
		j.Restart = withName(j.Restart, name)
		if err := r.records.WriteJournal(ctx, j); err != nil {
			return err
		}
	}
	return r.Host.StopService(ctx, s.Config.Name)
}

// removeFile removes a file, or a folder that is still empty.
func (r *run) removeFile(ctx context.Context, f plan.WantedFile) error {
	if f.ID == bundle.KindDirectory.ID(f.Path) {
		inside, err := r.Host.List(ctx, f.Path)
		if err != nil || len(inside) > 0 {
			return err
		}
	}
	return r.Host.Remove(ctx, f.Path)
}

// writeFile writes a content to its path. A file that was kept whole is moved back, with its own security.
func (r *run) writeFile(ctx context.Context, f plan.WantedFile) error {
	if r.records.Store.RestoreFile(ctx, f.Content.SHA256, f.Path) {
		return nil
	}
	data, err := r.records.Store.OpenContent(ctx, f.Content)
	if err != nil {
		return err
	}
	access := f.Access
	if access == "" || access == plan.AccessOther {
		access = bundle.AccessAdmins
	}
	return errors.Join(r.Host.Write(ctx, f.Path, access, data), data.Close())
}

// clearState removes state of another cluster and records that it did.
func (r *run) clearState(ctx context.Context, path string) error {
	if err := removeTree(ctx, r.Host, path); err != nil {
		return err
	}
	r.records.Journal.Stale.Paths = slices.DeleteFunc(r.records.Journal.Stale.Paths, func(p string) bool { return p == path })
	return r.records.WriteJournal(ctx, r.records.Journal)
}

// applySetting makes a setting what it should be. A setting that this host cannot have is noted and is no error: an endpoint whose
// network does not exist yet, an exclusion without Defender.
func (r *run) applySetting(ctx context.Context, s plan.Step) error {
	setting := plan.Setting{Kind: s.Setting.Kind, Name: s.Setting.Name, Present: s.Setting.Present}
	if setting.Present {
		text, err := r.valueText(ctx, s.Setting.Value)
		if err != nil {
			return err
		}
		setting.Value = text
	}
	err := r.Host.Set(ctx, setting)
	if setting.Kind == bundle.KindNetwork && err == nil {
		r.records.Journal.Stale.Networks = slices.DeleteFunc(r.records.Journal.Stale.Networks, func(n string) bool { return n == setting.Name })
	}
	if errors.Is(err, ErrNoSetting) {
		r.progress.note(fmt.Sprintf("%s: %v", s.Entry, err))
		return nil
	}
	if err == nil && setting.Present && s.Impact == bundle.ImpactReboot {
		r.progress.pending = append(r.progress.pending, s.Entry)
	}
	return err
}

// maxText limits the contents that become settings, in bytes: certificates and variables.
const maxText = 1 << 20

// valueText returns a value, which may be in the store.
func (r *run) valueText(ctx context.Context, v plan.Value) (string, error) {
	if v.Known {
		return v.Text, nil
	}
	f, err := r.records.Store.OpenContent(ctx, v.Content)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxText))
	return string(data), r.records.Store.RejectCorrupt(ctx, v.Content.SHA256, errors.Join(err, f.Close()))
}

// configureService configures a service.
func (r *run) configureService(ctx context.Context, s plan.WantedService) error {
	config := s.Config
	config.Environment = nil
	for _, v := range s.Variables {
		text, err := r.valueText(ctx, v.Value)
		if err != nil {
			return err
		}
		config.Environment = append(config.Environment, v.Name+"="+text)
	}
	config.Environment = append(config.Environment, s.HiddenVariables(r.shadows)...)
	slices.Sort(config.Environment)
	if strings.EqualFold(config.Name, r.Self) {
		r.progress.restartSelf = true
	}
	return r.Host.PutService(ctx, config)
}
