package applier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"wmco/bundle"
)

// do carries out one step. Every one can be done twice.
func (r *run) do(ctx context.Context, s step) error {
	switch s.Verb {
	case VerbMake:
		access := cmp.Or(s.file.access, s.file.inherited)
		if access == "" || access == AccessOther {
			access = bundle.AccessUsers
		}
		return r.Host.MakeDirectory(ctx, s.file.path, access)
	case VerbWrite, VerbRestore:
		r.written++
		return r.s.store.reject(ctx, s.file.content.SHA256, r.write(ctx, s.file))
	case VerbRemove:
		return r.remove(ctx, s.file)
	case VerbClear:
		return r.clear(ctx, s.file.path)
	case VerbSet, VerbUnset:
		return r.set(ctx, s)
	case VerbPut:
		return r.put(ctx, s.service)
	case VerbDelete:
		return r.Host.DeleteService(ctx, s.service.config.Name)
	case VerbStop:
		return r.stop(ctx, s.service)
	case VerbStart:
		return r.start(ctx, s.service)
	}
	return fmt.Errorf("unknown verb %q", s.Verb)
}

// stop writes down that the service has to be started anew, then stops it.
func (r *run) stop(ctx context.Context, s serviceItem) error {
	j := r.s.journal
	if name := s.config.Name; s.run && r.s.cut && !slices.Contains(j.Restart, name) {
		j.Restart = with(j.Restart, name)
		if err := r.enter(ctx, j); err != nil {
			return err
		}
	}
	return r.Host.StopService(ctx, s.config.Name)
}

// start starts a service, and writes down that it has been.
func (r *run) start(ctx context.Context, s serviceItem) error {
	r.restarted++
	if err := r.Host.StartService(ctx, s.config.Name); err != nil {
		return err
	}
	j := r.s.journal
	if !slices.Contains(j.Restart, s.config.Name) {
		return nil
	}
	j.Restart = slices.DeleteFunc(slices.Clone(j.Restart), func(n string) bool { return n == s.config.Name })
	return r.enter(ctx, j)
}

// remove removes a file, or a folder in which nothing has been put since it was seen.
func (r *run) remove(ctx context.Context, f fileItem) error {
	if f.id == bundle.KindDirectory.ID(f.path) {
		inside, err := r.Host.List(ctx, f.path)
		if err != nil || len(inside) > 0 {
			return err
		}
	}
	return r.Host.Remove(ctx, f.path)
}

// write puts a content into its place. A file that was kept aside whole goes back as it was, with its own security.
func (r *run) write(ctx context.Context, f fileItem) error {
	sum := f.content.SHA256
	if r.s.store.previous[sum] && !r.s.store.linked[sum] && !r.s.store.whole(sum) {
		if err := r.Host.Link(ctx, previousPath(sum), f.path); err == nil {
			r.s.store.linked[sum] = true
			return nil
		}
		// The program in its place runs, or the file system has no links.
	}
	data, err := r.s.store.open(ctx, f.content)
	if err != nil {
		return err
	}
	access := f.access
	if access == "" || access == AccessOther {
		access = bundle.AccessAdmins
	}
	return errors.Join(r.Host.Write(ctx, f.path, access, data), data.Close())
}

// clear removes state of another cluster and notes that it is done.
func (r *run) clear(ctx context.Context, path string) error {
	if err := r.removeTree(ctx, path); err != nil {
		return err
	}
	r.s.journal.Stale.Paths = slices.DeleteFunc(r.s.journal.Stale.Paths, func(p string) bool { return p == path })
	return r.s.records.write(ctx, fileJournal, r.s.journal)
}

// set makes a setting what it should be. What this machine cannot have is told and is no failure: an endpoint whose
// network is not there yet, an exclusion without Defender.
func (r *run) set(ctx context.Context, s step) error {
	setting := s.setting.Setting
	if setting.Present {
		text, err := r.text(ctx, s.setting.value)
		if err != nil {
			return err
		}
		setting.Value = text
	}
	err := r.Host.Set(ctx, setting)
	if setting.Kind == bundle.KindNetwork && err == nil {
		r.s.journal.Stale.Networks = slices.DeleteFunc(r.s.journal.Stale.Networks, func(n string) bool { return n == setting.Name })
	}
	if errors.Is(err, ErrNoSetting) {
		r.note(fmt.Sprintf("%s: %v", s.Entry, err))
		return nil
	}
	if err == nil && setting.Present && s.Impact == bundle.ImpactReboot {
		r.pending = append(r.pending, s.Entry)
	}
	return err
}

// maxText bounds the contents that become settings, in bytes: certificates and variables.
const maxText = 1 << 20

// text is a value that may be in the store.
func (r *run) text(ctx context.Context, v value) (string, error) {
	if v.known {
		return v.text, nil
	}
	f, err := r.s.store.open(ctx, v.content)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxText))
	return string(data), r.s.store.reject(ctx, v.content.SHA256, errors.Join(err, f.Close()))
}

// put configures a service.
func (r *run) put(ctx context.Context, s serviceItem) error {
	config := s.config
	config.Environment = nil
	for _, v := range s.variables {
		text, err := r.text(ctx, v.value)
		if err != nil {
			return err
		}
		config.Environment = append(config.Environment, v.name+"="+text)
	}
	config.Environment = append(config.Environment, s.hidden(r.shadows)...)
	slices.Sort(config.Environment)
	if strings.EqualFold(config.Name, r.Self) {
		r.restartSelf = true
	}
	return r.Host.PutService(ctx, config)
}
