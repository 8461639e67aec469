package applier

import (
	"context"
	"fmt"
	"slices"

	"wmco/bundle"
)

// begin writes down, before the first action, what is about to change and what it was, and keeps the files that are about
// to go. After a cut, what the first run wrote down stays: that is what there was.
func (r *run) begin(ctx context.Context, record bundleRecord, p plan, seen observed, t *target) error {
	j := r.s.journal
	if r.s.cut && j.Bundle.Manifest.Digest != record.Manifest.Digest {
		j.Earlier = append(j.Earlier, j.Bundle)
	}
	j.Schema, j.Phase, j.Bundle, j.Boot = Schema, phaseApplying, record, r.s.facts.BootTime
	if err := r.remember(ctx, &j.Before, p, seen); err != nil {
		return err
	}
	for _, name := range p.readers() {
		j.Restart = with(j.Restart, name)
	}
	for _, s := range p.steps {
		switch s.Verb {
		case VerbClear:
			j.Stale.Paths = with(j.Stale.Paths, s.file.path)
		case VerbUnset:
			if s.setting.Kind == bundle.KindNetwork {
				j.Stale.Networks = with(j.Stale.Networks, s.setting.Name)
			}
		case VerbStart:
			j.Starts = with(j.Starts, s.service.config.Name)
		case VerbMake, VerbSet, VerbWrite, VerbStop, VerbPut, VerbDelete, VerbRemove, VerbRestore:
		}
	}
	for _, s := range t.services {
		// The boot starts what does not run.
		if p.reboot && s.run && seen.service(s.config.Name).Status != ServiceRunning {
			j.Starts = with(j.Starts, s.config.Name)
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
func (r *run) enter(ctx context.Context, j journal) error {
	if err := r.s.records.write(ctx, fileJournal, j); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	r.s.journal, r.s.cut, r.applying = j, true, true
	return nil
}

// remember adds to b what the steps are about to change.
func (r *run) remember(ctx context.Context, b *before, p plan, seen observed) error {
	for _, s := range p.steps {
		switch s.Verb {
		case VerbMake, VerbWrite, VerbRemove, VerbRestore:
			if err := r.rememberFile(ctx, b, s, seen); err != nil {
				return err
			}
		case VerbSet, VerbUnset:
			if s.setting.Kind == bundle.KindNetwork {
				continue // it belongs to another cluster and would be removed again
			}
			b.addSetting(seen.settings[s.Entry], s.setting.Setting)
		case VerbStop, VerbPut, VerbDelete, VerbStart:
			b.addService(s.service.config.Name, seen)
		case VerbClear: // it belongs to another cluster and would be removed again
		}
	}
	return nil
}

func (r *run) rememberFile(ctx context.Context, b *before, s step, seen observed) error {
	same := func(f fileBefore) bool { return bundle.FoldPath(f.Path) == bundle.FoldPath(s.file.path) }
	if slices.ContainsFunc(b.Files, same) {
		return nil
	}
	have := seen.file(s.file.path)
	f := fileBefore{Entry: s.Entry, Path: s.file.path, Kind: have.Kind, Access: have.Access}
	if have.Kind == FileRegular {
		sum := have.sha256
		if sum == "" {
			var err error
			if sum, err = sumOf(ctx, r.Host, s.file.path); err != nil {
				return err
			}
		}
		if sum == "" {
			f.Kind = FileAbsent // it has gone since it was seen
		} else {
			f.Content = content{SHA256: sum, Size: have.Size}
			if err := r.s.store.keep(ctx, s.file.path, f.Content); err != nil {
				return fmt.Errorf("keeping %s: %w", s.file.path, err)
			}
		}
	}
	b.Files = append(b.Files, f)
	return nil
}

func (b *before) addSetting(have, wanted Setting) {
	same := func(s settingBefore) bool { return s.Kind == wanted.Kind && s.Name == wanted.Name }
	if slices.ContainsFunc(b.Settings, same) {
		return
	}
	b.Settings = append(b.Settings, settingBefore{Kind: wanted.Kind, Name: wanted.Name, Value: []byte(have.Value), Present: have.Present})
}

func (b *before) addService(name string, seen observed) {
	same := func(s serviceBefore) bool { return serviceName(s.Config.Name) == serviceName(name) }
	if slices.ContainsFunc(b.Services, same) {
		return
	}
	have := seen.service(name)
	have.Name = name
	b.Services = append(b.Services, serviceBefore{
		Config: have.ServiceConfig, Present: have.Status != ServiceAbsent, Running: have.Status == ServiceRunning || have.Status == ServicePending,
	})
}

// target is what there was, as something to apply.
func (b before) target() target {
	t := target{exclusive: map[string]bool{}, logs: map[string]bool{}}
	for _, f := range b.Files {
		item := fileItem{id: f.Entry, path: f.Path, kind: f.Kind, access: f.Access, impact: bundle.ImpactRestart, content: f.Content, reason: ReasonUnwanted}
		switch f.Kind {
		case FileRegular:
			item.digest = bundle.Digest("sha256:" + f.Content.SHA256)
		case FileOther:
			continue // a link that stood in the way: nobody can say where it led
		case FileAbsent, FileDirectory:
		}
		t.files = append(t.files, item)
	}
	sortFiles(t.files)
	for _, s := range b.Settings {
		text := string(s.Value)
		t.settings = append(t.settings, settingItem{
			Setting: Setting{Kind: s.Kind, Name: s.Name, Value: text, Present: s.Present}, value: plainValue(text), impact: bundle.ImpactRestart,
		})
	}
	for _, s := range b.Services {
		t.services = append(t.services, s.item())
	}
	return t
}

func (s serviceBefore) item() serviceItem {
	item := serviceItem{config: s.Config, present: s.Present, run: s.Running, impact: bundle.ImpactRestart}
	for _, line := range s.Config.Environment {
		v := splitVariable(line)
		item.variables = append(item.variables, v)
	}
	item.config.Environment = nil
	return item
}
