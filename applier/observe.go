package applier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"wmco/bundle"
)

// observed is what is on a host, as far as a target asks.
type observed struct {
	// files by bundle.FoldPath. Of files whose size tells that they differ, the contents are not known.
	files    map[string]fileSeen
	settings map[bundle.EntryID]Setting
	services map[string]ServiceState // by name in lower case
	// folders are what stands in folders that were listed, by the folded path of the folder.
	folders map[string][]FileInfo
}

type fileSeen struct {
	FileInfo
	// sha256 is empty where the file was not read.
	sha256 string
}

// observer asks a host everything that a target needs to know, at once.
type observer struct {
	host  Host
	cache *cache
	// full reads files whatever the cache says.
	full bool
	now  time.Time
}

func (o observer) observe(ctx context.Context, t *target) (observed, error) {
	seen := observed{
		files: map[string]fileSeen{}, settings: map[bundle.EntryID]Setting{}, services: map[string]ServiceState{},
		folders: map[string][]FileInfo{},
	}
	for _, ask := range []func(context.Context, *target, *observed) error{o.stat, o.list, o.hash, o.settings, o.services} {
		if err := ask(ctx, t, &seen); err != nil {
			return observed{}, err
		}
	}
	return seen, nil
}

func (o observer) stat(ctx context.Context, t *target, seen *observed) error {
	var paths []string
	for _, f := range t.files {
		paths = append(paths, f.path)
	}
	for _, s := range t.state {
		paths = append(paths, s.Path)
	}
	infos, err := o.host.Stat(ctx, paths)
	if err != nil {
		return fmt.Errorf("observing files: %w", err)
	}
	for i, f := range infos {
		seen.files[bundle.FoldPath(paths[i])] = fileSeen{FileInfo: f}
	}
	return nil
}

// list looks into folders: those with files of ours for what is not ours, exclusive ones and those that must go or are in
// the way to their depths.
func (o observer) list(ctx context.Context, t *target, seen *observed) error {
	shallow, deep := map[string]string{}, map[string]string{}
	for _, f := range t.files {
		key := bundle.FoldPath(f.path)
		isFolder := seen.files[key].Kind == FileDirectory
		if f.kind != FileDirectory && !isRoot(bundle.Dir(f.path)) {
			shallow[bundle.FoldPath(bundle.Dir(f.path))] = bundle.Dir(f.path)
		}
		if isFolder && f.kind == FileRegular || t.exclusive[key] {
			deep[key] = f.path
		}
		if isFolder && f.kind == FileAbsent {
			shallow[key] = f.path
		}
	}
	for key, dir := range deep {
		delete(shallow, key)
		if err := o.walk(ctx, dir, seen); err != nil {
			return err
		}
	}
	for key, dir := range shallow {
		if _, done := seen.folders[key]; done {
			continue
		}
		if err := o.listOne(ctx, dir, seen); err != nil {
			return err
		}
	}
	return nil
}

func (o observer) listOne(ctx context.Context, dir string, seen *observed) error {
	infos, err := o.host.List(ctx, dir)
	if err != nil {
		return fmt.Errorf("listing %s: %w", dir, err)
	}
	seen.folders[bundle.FoldPath(dir)] = infos
	for _, f := range infos {
		if _, known := seen.files[bundle.FoldPath(f.Path)]; !known {
			seen.files[bundle.FoldPath(f.Path)] = fileSeen{FileInfo: f}
		}
	}
	return nil
}

func (o observer) walk(ctx context.Context, dir string, seen *observed) error {
	if err := o.listOne(ctx, dir, seen); err != nil {
		return err
	}
	for _, f := range seen.folders[bundle.FoldPath(dir)] {
		if f.Kind != FileDirectory {
			continue
		}
		if err := o.walk(ctx, f.Path, seen); err != nil {
			return err
		}
	}
	return nil
}

// hash reads the files that can be right: those of the size that is wanted. What is in the cache is not read.
func (o observer) hash(ctx context.Context, t *target, seen *observed) error {
	var todo []FileInfo
	for _, f := range t.files {
		have := seen.files[bundle.FoldPath(f.path)]
		if f.kind != FileRegular || have.Kind != FileRegular || f.content.SHA256 == "" || f.content.Size >= 0 && f.content.Size != have.Size {
			continue
		}
		todo = append(todo, have.FileInfo)
	}
	sums, err := o.sums(ctx, todo)
	for i, sum := range sums {
		key := bundle.FoldPath(todo[i].Path)
		have := seen.files[key]
		have.sha256 = sum
		seen.files[key] = have
	}
	return err
}

// sums are the sha256 of files, read on all processors; empty for one that has gone meanwhile.
func (o observer) sums(ctx context.Context, files []FileInfo) ([]string, error) {
	sums, errs := make([]string, len(files)), make([]error, len(files))
	var work sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i, f := range files {
		if sum := o.cache.lookup(f); sum != "" && !o.full {
			sums[i] = sum
			continue
		}
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			sums[i], errs[i] = sumOf(ctx, o.host, f.Path)
		})
	}
	work.Wait()
	for i, f := range files {
		if sums[i] != "" {
			o.cache.store(f, sums[i], o.now)
		}
	}
	return sums, errors.Join(errs...)
}

// sumOf is the sha256 of a file in hex, empty for one that is not there.
func sumOf(ctx context.Context, host Reader, path string) (string, error) {
	f, err := host.Open(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	h := sha256.New()
	_, err = io.CopyBuffer(onlyWriter{h}, contextReader{ctx, f}, make([]byte, 256<<10))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// onlyWriter hides other methods, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }

// contextReader ends reading when the context does.
type contextReader struct {
	ctx context.Context //nolint:containedctx // io.Reader has no other way to carry it
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

func (o observer) settings(ctx context.Context, t *target, seen *observed) error {
	var names []Setting
	for _, s := range t.settings {
		names = append(names, Setting{Kind: s.Kind, Name: s.Name})
	}
	have, err := o.host.Settings(ctx, names)
	if err != nil {
		return fmt.Errorf("observing settings: %w", err)
	}
	for i, s := range have {
		seen.settings[names[i].ID()] = s
	}
	return nil
}

func (o observer) services(ctx context.Context, t *target, seen *observed) error {
	names := t.serviceNames()
	states, err := o.host.Services(ctx, names)
	if err != nil {
		return fmt.Errorf("observing services: %w", err)
	}
	for i, s := range states {
		seen.services[strings.ToLower(names[i])] = s
	}
	return nil
}

func (seen observed) service(name string) ServiceState { return seen.services[strings.ToLower(name)] }

func (seen observed) file(path string) fileSeen { return seen.files[bundle.FoldPath(path)] }

// foreign are files in folders of ours that nobody asked for: neither the target, nor rules for state and logs, nor
// leftovers of a cut.
func (seen observed) foreign(t *target) (foreign, leftovers []string) {
	wanted := t.names()
	for _, folder := range slices.Sorted(maps.Keys(seen.folders)) {
		if t.exclusive[folder] || t.insideExclusive(folder) || t.logs[folder] {
			continue
		}
		for _, f := range seen.folders[folder] {
			switch {
			case Leftover(f.Path):
				leftovers = append(leftovers, f.Path)
			case wanted[fileName(f.Path)] || t.isState(f.Path) || t.logs[bundle.FoldPath(f.Path)] || t.holdsState(f.Path):
			default:
				foreign = append(foreign, f.Path)
			}
		}
	}
	return foreign, leftovers
}

// isState tells whether programs on the host write the path.
func (t *target) isState(path string) bool {
	key := bundle.FoldPath(path)
	return slices.ContainsFunc(t.state, func(s bundle.State) bool {
		dir := bundle.FoldPath(s.Path)
		if s.Pattern != "" {
			return bundle.FoldPath(bundle.Dir(path)) == dir && matches(s.Pattern, path)
		}
		return key == dir || strings.HasPrefix(key, dir+`\`)
	})
}

// holdsState tells whether state of programs, or logs, are somewhere in a folder.
func (t *target) holdsState(dir string) bool {
	inside := bundle.FoldPath(dir) + `\`
	for log := range t.logs {
		if strings.HasPrefix(log, inside) {
			return true
		}
	}
	return slices.ContainsFunc(t.state, func(s bundle.State) bool { return strings.HasPrefix(bundle.FoldPath(s.Path), inside) })
}

// insideExclusive tells whether a folded path is below an exclusive folder.
func (t *target) insideExclusive(key string) bool {
	for dir := range t.exclusive {
		if strings.HasPrefix(key, dir+`\`) {
			return true
		}
	}
	return false
}
