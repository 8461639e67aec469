package applier

import (
	"context"
	"fmt"
	"slices"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// begin writes down, before the first action, what is about to change and what it was, and keeps the files that are about
// to go. After a cut, what the first run wrote down stays: that is what there was.
func (r *run) begin(ctx context.Context, record records.Bundle, p plan.Plan, seen plan.Observed, t *plan.Target) error {
	j := r.s.Journal
	if r.s.Cut && j.Bundle.Manifest.Digest != record.Manifest.Digest {
		j.Earlier = append(j.Earlier, j.Bundle)
	}
	j.Schema, j.Phase, j.Bundle, j.Boot = records.Schema, records.PhaseApplying, record, r.s.facts.BootTime
	if err := r.remember(ctx, &j.Before, p, seen); err != nil {
		return err
	}
	for _, name := range p.Readers() {
		j.Restart = with(j.Restart, name)
	}
	for _, s := range p.Steps {
		switch s.Verb {
		case plan.VerbClear:
			j.Stale.Paths = with(j.Stale.Paths, s.File.Path)
		case plan.VerbUnset:
			if s.Setting.Kind == bundle.KindNetwork {
				j.Stale.Networks = with(j.Stale.Networks, s.Setting.Name)
			}
		case plan.VerbStart:
			j.Starts = with(j.Starts, s.Service.Config.Name)
		case plan.VerbMake, plan.VerbSet, plan.VerbWrite, plan.VerbStop, plan.VerbPut, plan.VerbDelete, plan.VerbRemove:
		}
	}
	for _, s := range t.Services {
		// The boot starts what does not run.
		if p.Reboot && s.Run && seen.Service(s.Config.Name).Status != plan.ServiceRunning {
			j.Starts = with(j.Starts, s.Config.Name)
		}
	}
	r.shadows = shadows(r.s, t, seen)
	return r.enter(ctx, j)
}

// with returns a list that has the name, once. The list itself stays as it is.
func with(list []string, name string) []string {
	if slices.Contains(list, name) {
		return list
	}
	return append(slices.Clone(list), name)
}

// enter writes the journal.
func (r *run) enter(ctx context.Context, j records.Journal) error {
	if err := r.s.WriteJournal(ctx, j); err != nil {
		return err
	}
	r.applying = true
	return nil
}

// remember adds to b what the steps are about to change.
func (r *run) remember(ctx context.Context, b *records.Before, p plan.Plan, seen plan.Observed) error {
	for _, s := range p.Steps {
		switch s.Verb {
		case plan.VerbMake, plan.VerbWrite, plan.VerbRemove:
			if err := r.rememberFile(ctx, b, s, seen); err != nil {
				return err
			}
		case plan.VerbSet, plan.VerbUnset:
			if s.Setting.Kind == bundle.KindNetwork {
				continue // it belongs to another cluster and would be removed again
			}
			b.AddSetting(seen.Settings[s.Entry], s.Setting)
		case plan.VerbStop, plan.VerbPut, plan.VerbDelete, plan.VerbStart:
			b.AddService(s.Service.Config.Name, seen)
		case plan.VerbClear: // it belongs to another cluster and would be removed again
		}
	}
	return nil
}

func (r *run) rememberFile(ctx context.Context, b *records.Before, s plan.Step, seen plan.Observed) error {
	same := func(f records.FileBefore) bool { return bundle.FoldPath(f.Path) == bundle.FoldPath(s.File.Path) }
	if slices.ContainsFunc(b.Files, same) {
		return nil
	}
	have := seen.File(s.File.Path)
	f := records.FileBefore{Entry: s.Entry, Path: s.File.Path, Kind: have.Kind, Access: have.Access}
	if have.Kind == plan.FileRegular {
		sum := have.SHA256
		if sum == "" {
			var err error
			if sum, err = sumOf(ctx, r.Host, s.File.Path); err != nil {
				return err
			}
		}
		if sum == "" {
			f.Kind = plan.FileAbsent // it has gone since it was seen
		} else {
			f.Content = plan.Content{SHA256: sum, Size: have.Size}
			if err := r.s.Store.Keep(ctx, s.File.Path, f.Content); err != nil {
				return fmt.Errorf("keeping %s: %w", s.File.Path, err)
			}
		}
	}
	b.Files = append(b.Files, f)
	return nil
}
