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
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// executor does the steps of a plan.
type executor struct {
	host Host
	// self is Engine.Self: its service is never stopped.
	self     string
	records  *records.Records
	progress *progress
	// shadows are the variables that services get with an empty value.
	shadows []string
}

// doSteps does the steps in order.
func (x *executor) doSteps(ctx context.Context, steps []plan.Step) error {
	for len(steps) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := batchLength(steps)
		if err := x.doStepBatch(ctx, steps[:n]); err != nil {
			return err
		}
		for _, s := range steps[:n] {
			x.progress.countAction(s.Action)
		}
		steps = steps[n:]
	}
	return nil
}

// batchLength returns the number of steps, from the first one on, that are done at once: files that follow each other
// in the plan and are large enough for more than one processor.
func batchLength(steps []plan.Step) int {
	n, size := 0, int64(0)
	for n < len(steps) && steps[n].Verb == protocol.VerbWrite && size < batchSize {
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
func (x *executor) doStepBatch(ctx context.Context, steps []plan.Step) error {
	if len(steps) == 1 {
		return nameStep(steps[0], x.doStep(ctx, steps[0]))
	}
	errs := make([]error, len(steps))
	var work sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i, s := range steps {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			errs[i] = x.writeFile(ctx, s.File)
		})
	}
	work.Wait()
	x.progress.written += len(steps)
	for i, s := range steps {
		errs[i] = nameStep(s, x.records.Store.RejectCorrupt(ctx, s.File.Content.SHA256, errs[i]))
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
func (x *executor) doStep(ctx context.Context, s plan.Step) error {
	switch s.Verb {
	case protocol.VerbMake:
		access := cmp.Or(s.File.Access, s.File.Inherited)
		if access == "" || access == plan.AccessOther {
			access = bundle.AccessUsers
		}
		return quarantine{x.host, x.progress}.makeFolder(ctx, x.records, s.File.Path, access)
	case protocol.VerbWrite:
		x.progress.written++
		return x.records.Store.RejectCorrupt(ctx, s.File.Content.SHA256, x.writeFile(ctx, s.File))
	case protocol.VerbRemove:
		return x.removeFile(ctx, s.File)
	case protocol.VerbClear:
		return x.clearState(ctx, s.File.Path)
	case protocol.VerbSet, protocol.VerbUnset:
		return x.applySetting(ctx, s)
	case protocol.VerbPut:
		return x.configureService(ctx, s.Service)
	case protocol.VerbDelete:
		return x.host.DeleteService(ctx, s.Service.Config.Name)
	case protocol.VerbStop:
		return x.stopService(ctx, s.Service)
	case protocol.VerbStart:
		return x.startService(ctx, s)
	}
	return fmt.Errorf("unknown verb %q", s.Verb)
}

// stopService records that the service has to be started again, then stops it.
func (x *executor) stopService(ctx context.Context, s plan.WantedService) error {
	j := x.records.Journal
	if name := s.Config.Name; s.Run && x.records.Interrupted && !slices.Contains(j.Restart, name) {
		j.Restart = withName(j.Restart, name)
		if err := x.records.WriteJournal(ctx, j); err != nil {
			return err
		}
	}
	return x.host.StopService(ctx, s.Config.Name)
}

// withName returns a list that has the name, once. The list itself is not changed.
func withName(list []string, name string) []string {
	if slices.Contains(list, name) {
		return list
	}
	return append(slices.Clone(list), name)
}

// removeFile removes a file, or a folder that is still empty.
func (x *executor) removeFile(ctx context.Context, f plan.WantedFile) error {
	if f.ID == bundle.KindDirectory.ID(f.Path) {
		inside, err := x.host.List(ctx, f.Path)
		if err != nil || len(inside) > 0 {
			return err
		}
	}
	return x.host.Remove(ctx, f.Path)
}

// writeFile writes a content to its path. A file that was kept whole is moved back, with its own security.
func (x *executor) writeFile(ctx context.Context, f plan.WantedFile) error {
	if x.records.Store.RestoreFile(ctx, f.Content.SHA256, f.Path) {
		return nil
	}
	data, err := x.records.Store.OpenContent(ctx, f.Content)
	if err != nil {
		return err
	}
	access := f.Access
	if access == "" || access == plan.AccessOther {
		access = bundle.AccessAdmins
	}
	return errors.Join(x.host.Write(ctx, f.Path, access, data), data.Close())
}

// clearState removes state of another cluster and records that it did.
func (x *executor) clearState(ctx context.Context, path string) error {
	if err := removeTree(ctx, x.host, path); err != nil {
		return err
	}
	x.records.Journal.Stale.Paths = slices.DeleteFunc(x.records.Journal.Stale.Paths, func(p string) bool { return p == path })
	return x.records.WriteJournal(ctx, x.records.Journal)
}

// applySetting makes a setting what it should be. A setting that this host cannot have is noted and is no error: an
// endpoint whose network does not exist yet, an exclusion without Defender.
func (x *executor) applySetting(ctx context.Context, s plan.Step) error {
	setting := plan.Setting{Kind: s.Setting.Kind, Name: s.Setting.Name, Present: s.Setting.Present}
	if setting.Present {
		text, err := x.valueText(ctx, s.Setting.Value)
		if err != nil {
			return err
		}
		setting.Value = text
	}
	err := x.host.Set(ctx, setting)
	if setting.Kind == bundle.KindNetwork && err == nil {
		x.records.Journal.Stale.Networks = slices.DeleteFunc(x.records.Journal.Stale.Networks, func(n string) bool { return n == setting.Name })
	}
	if errors.Is(err, ErrNoSetting) {
		x.progress.addNote(fmt.Sprintf("%s: %v", s.Entry, err))
		return nil
	}
	if err == nil && setting.Present && s.Impact == bundle.ImpactReboot {
		x.progress.pending = append(x.progress.pending, s.Entry)
	}
	return err
}

// maxText limits the contents that become settings, in bytes: certificates and variables.
const maxText = 1 << 20

// valueText returns a value, which may be in the store.
func (x *executor) valueText(ctx context.Context, v plan.Value) (string, error) {
	if v.Known {
		return v.Text, nil
	}
	f, err := x.records.Store.OpenContent(ctx, v.Content)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxText))
	return string(data), x.records.Store.RejectCorrupt(ctx, v.Content.SHA256, errors.Join(err, f.Close()))
}

// configureService configures a service.
func (x *executor) configureService(ctx context.Context, s plan.WantedService) error {
	config := s.Config
	config.Environment = nil
	for _, v := range s.Variables {
		text, err := x.valueText(ctx, v.Value)
		if err != nil {
			return err
		}
		config.Environment = append(config.Environment, v.Name+"="+text)
	}
	config.Environment = append(config.Environment, s.HiddenVariables(x.shadows)...)
	slices.Sort(config.Environment)
	if strings.EqualFold(config.Name, x.self) {
		x.progress.restartSelf = true
	}
	return x.host.PutService(ctx, config)
}

// sweepLeftovers removes what interruptions left behind. A program that still runs stays until another time.
func sweepLeftovers(ctx context.Context, host Host, p plan.Plan) {
	for _, path := range p.Leftovers {
		_ = host.Remove(ctx, path)
	}
}

// sweepAfter removes the programs that steps moved aside because they were running.
func sweepAfter(ctx context.Context, host Host, p plan.Plan) {
	folders := map[string]bool{}
	for _, s := range p.Steps {
		if s.Verb == protocol.VerbWrite || s.Verb == protocol.VerbRemove {
			folders[bundle.Dir(s.File.Path)] = true
		}
	}
	for dir := range folders {
		infos, err := host.List(ctx, dir)
		if err != nil {
			continue
		}
		for _, f := range infos {
			if plan.IsLeftover(f.Path) {
				_ = host.Remove(ctx, f.Path)
			}
		}
	}
}

// removeTree removes a path with everything in it. Links are removed and not followed.
func removeTree(ctx context.Context, host Host, path string) error {
	infos, err := host.Stat(ctx, []string{path})
	if err != nil {
		return err
	}
	if infos[0].Kind == plan.FileDirectory {
		children, err := host.List(ctx, path)
		if err != nil {
			return err
		}
		for _, c := range children {
			if err := removeTree(ctx, host, c.Path); err != nil {
				return err
			}
		}
	}
	return host.Remove(ctx, path)
}
