package applier

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// observer asks a host for everything that a target needs, at once.
type observer struct {
	host  Host
	cache *records.Cache
	// full reads files whatever the cache has.
	full bool
	now  time.Time
	// applied are the contents of the files of the bundle that was applied last, by bundle.FoldPath.
	applied map[string]plan.Content
}

func (o observer) observeTarget(ctx context.Context, t *plan.Target) (plan.Observed, error) {
	observed := plan.Observed{
		Files: map[string]plan.ObservedFile{}, Settings: map[bundle.EntryID]plan.Setting{}, Services: map[string]plan.ServiceState{},
		Folders: map[string][]plan.FileInfo{},
	}
	for _, ask := range []func(context.Context, *plan.Target, *plan.Observed) error{
		o.statPaths, o.listFolders, o.hashCandidates, o.readSettings, o.readServices,
	} {
		if err := ask(ctx, t, &observed); err != nil {
			return plan.Observed{}, err
		}
	}
	return observed, nil
}

func (o observer) statPaths(ctx context.Context, t *plan.Target, observed *plan.Observed) error {
	var paths []string
	for _, f := range t.Files {
		paths = append(paths, f.Path)
	}
	for _, s := range t.State {
		paths = append(paths, s.Path)
	}
	infos, err := o.host.Stat(ctx, paths)
	if err != nil {
		return fmt.Errorf("observing files: %w", err)
	}
	for i, f := range infos {
		observed.Files[bundle.FoldPath(paths[i])] = plan.ObservedFile{FileInfo: f}
	}
	return nil
}

// listFolders lists folders: those with managed files, to find unmanaged ones, and to their full depth exclusive ones
// and those that are removed or in the way.
func (o observer) listFolders(ctx context.Context, t *plan.Target, observed *plan.Observed) error {
	shallow, deep := map[string]string{}, map[string]string{}
	for _, f := range t.Files {
		key := bundle.FoldPath(f.Path)
		isFolder := observed.Files[key].Kind == plan.FileDirectory
		if f.Kind != plan.FileDirectory && !plan.IsRoot(bundle.Dir(f.Path)) {
			shallow[bundle.FoldPath(bundle.Dir(f.Path))] = bundle.Dir(f.Path)
		}
		if isFolder && f.Kind == plan.FileRegular || t.Exclusive[key] {
			deep[key] = f.Path
		}
		if isFolder && f.Kind == plan.FileAbsent {
			shallow[key] = f.Path
		}
	}
	for key, dir := range deep {
		delete(shallow, key)
		if err := o.walkFolder(ctx, dir, observed); err != nil {
			return err
		}
	}
	for key, dir := range shallow {
		if _, done := observed.Folders[key]; done {
			continue
		}
		if err := o.listOne(ctx, dir, observed); err != nil {
			return err
		}
	}
	return nil
}

func (o observer) listOne(ctx context.Context, dir string, observed *plan.Observed) error {
	infos, err := o.host.List(ctx, dir)
	if err != nil {
		return fmt.Errorf("listing %s: %w", dir, err)
	}
	observed.Folders[bundle.FoldPath(dir)] = infos
	for _, f := range infos {
		if _, known := observed.Files[bundle.FoldPath(f.Path)]; !known {
			observed.Files[bundle.FoldPath(f.Path)] = plan.ObservedFile{FileInfo: f}
		}
	}
	return nil
}

func (o observer) walkFolder(ctx context.Context, dir string, observed *plan.Observed) error {
	if err := o.listOne(ctx, dir, observed); err != nil {
		return err
	}
	for _, f := range observed.Folders[bundle.FoldPath(dir)] {
		if f.Kind != plan.FileDirectory {
			continue
		}
		if err := o.walkFolder(ctx, f.Path, observed); err != nil {
			return err
		}
	}
	return nil
}

// hashCandidates reads the files that can be right: those of the wanted size. Files in the cache are not read.
func (o observer) hashCandidates(ctx context.Context, t *plan.Target, observed *plan.Observed) error {
	var todo []plan.FileInfo
	for _, f := range t.Files {
		have := observed.Files[bundle.FoldPath(f.Path)]
		if f.Kind != plan.FileRegular || have.Kind != plan.FileRegular || f.Content.SHA256 == "" || f.Content.Size >= 0 && f.Content.Size != have.Size {
			continue
		}
		todo = append(todo, have.FileInfo)
	}
	sums, unread, err := o.hashFiles(ctx, todo)
	observed.Unread = unread
	for i, sum := range sums {
		key := bundle.FoldPath(todo[i].Path)
		have := observed.Files[key]
		have.SHA256 = sum
		observed.Files[key] = have
	}
	return err
}

// hashFiles returns the sha256 of files, read on all processors; empty for one that was removed since. One that another
// program has locked is among the unread: it has the sha256 that it had before, in the cache or in the bundle that was
// applied last.
func (o observer) hashFiles(ctx context.Context, files []plan.FileInfo) (sums, unread []string, err error) {
	sums = make([]string, len(files))
	errs := make([]error, len(files))
	var locked *FileError
	var work sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i, f := range files {
		if sum := o.cache.LookupSum(f); sum != "" && !o.full {
			sums[i] = sum
			continue
		}
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			sums[i], errs[i] = records.SumFile(ctx, o.host, f.Path)
		})
	}
	work.Wait()
	for i, f := range files {
		switch {
		case errors.As(errs[i], &locked) && locked.Reason == FileLocked:
			sums[i], errs[i] = o.cachedSum(f), nil
			unread = append(unread, f.Path)
		case errors.As(errs[i], &locked) && locked.Reason == FileDenied:
			errs[i] = nil // whatever is in it, its access is not ours: it is replaced
		case sums[i] != "":
			o.cache.StoreSum(f, sums[i], o.now)
		}
	}
	return sums, unread, errors.Join(errs...)
}

// cachedSum returns the sha256 that a file had when it was last known, empty where that is not known.
func (o observer) cachedSum(f plan.FileInfo) string {
	if sum := o.cache.LookupSum(f); sum != "" {
		return sum
	}
	if c := o.applied[bundle.FoldPath(f.Path)]; c.Size == f.Size {
		return c.SHA256
	}
	return ""
}

func (o observer) readSettings(ctx context.Context, t *plan.Target, observed *plan.Observed) error {
	var names []plan.Setting
	for _, s := range t.Settings {
		names = append(names, plan.Setting{Kind: s.Kind, Name: s.Name})
	}
	have, err := o.host.Settings(ctx, names)
	if err != nil {
		return fmt.Errorf("observing settings: %w", err)
	}
	for i, s := range have {
		observed.Settings[names[i].ID()] = s
	}
	return nil
}

func (o observer) readServices(ctx context.Context, t *plan.Target, observed *plan.Observed) error {
	names := t.ServiceNames()
	states, err := o.host.Services(ctx, names)
	if err != nil {
		return fmt.Errorf("observing services: %w", err)
	}
	for i, s := range states {
		observed.Services[strings.ToLower(names[i])] = s
	}
	return nil
}
