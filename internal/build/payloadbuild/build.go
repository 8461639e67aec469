package payloadbuild

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"wmco/internal/build/modules"
	"wmco/payload"
	"wmco/payload/store"
)

// Build builds the selected executables that are not current, writes the list and the bills of materials of all that
// are current, and prints a table of components. A component that cannot be built does not stop the others. The error
// is ErrNotServed if the only reason is that modules cannot be downloaded.
func Build(ctx context.Context, o Options) error {
	all, err := o.readRecipes(ctx)
	if err != nil {
		return err
	}
	wanted, err := o.chooseRecipes(all)
	if err != nil {
		return err
	}
	for _, dir := range []string{o.payloadDir(), o.stampDir(), o.sbomDir()} {
		if err := os.MkdirAll(dir, modeFolder); err != nil {
			return err
		}
	}
	stale := slices.DeleteFunc(slices.Clone(wanted), func(r recipe) bool { _, ok := o.currentStamp(r); return ok })
	failed := o.buildStale(ctx, stale)
	// The executables that were built are kept and listed even if others failed.
	if err := errors.Join(ctx.Err(), o.writeList(all)); err != nil {
		return err
	}
	return o.reportResults(wanted, failed)
}

// perBuild is the memory that one component may need, in bytes: its linker and the compilers that run at the same time.
// Linking a kubelet takes 1.5 GB.
const perBuild = 3 << 30

// buildStale builds components in parallel, and the executables of one component in sequence, as they share packages.
// It returns the errors by the name of the executable.
func (o Options) buildStale(ctx context.Context, stale []recipe) map[string]error {
	var mu sync.Mutex
	started, failed := 0, map[string]error{}
	group := errgroup.Group{}
	group.SetLimit(max(1, min(runtime.NumCPU(), int(availableMemory()/perBuild))))
	for _, list := range byComponent(stale) {
		group.Go(func() error {
			for _, r := range list {
				mu.Lock()
				started++
				o.logf("building %s %s (%d of %d)", r.Name, r.Version, started, len(stale))
				mu.Unlock()
				err := o.prepareModules(ctx, r)
				if err == nil {
					err = o.buildOne(ctx, r)
				}
				if err != nil {
					mu.Lock()
					failed[r.Name] = err
					mu.Unlock()
				}
			}
			return nil
		})
	}
	_ = group.Wait() // errors are kept by name
	return failed
}

// prepareModules downloads the modules of an executable and checks the GODEBUG settings of its component's go.mod.
func (o Options) prepareModules(ctx context.Context, r recipe) error {
	if r.Component == payload.Ours {
		return nil
	}
	if err := modules.Download(ctx, modules.Selection{Dir: r.dir, Packages: []string{r.Package}, Env: o.goEnvironment()}); err != nil {
		return err
	}
	if r.component.IsOurs() {
		return nil // upstream's go.mod is that of a library
	}
	return o.checkDebug(ctx, r.component)
}

func byComponent(all []recipe) [][]recipe {
	var lists [][]recipe
	for i, r := range all {
		if i > 0 && all[i-1].Component == r.Component {
			lists[len(lists)-1] = append(lists[len(lists)-1], r)
			continue
		}
		lists = append(lists, []recipe{r})
	}
	return lists
}

func (o Options) buildOne(ctx context.Context, r recipe) error {
	begin := time.Now()
	dir, err := os.MkdirTemp(o.stampDir(), "building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what remains of it is harmless
	exe := filepath.Join(dir, r.Name+".exe")
	source, err := o.patchedSource(ctx, r, filepath.Join(dir, "source"))
	if err != nil {
		return fmt.Errorf("patching %s: %w", r.Name, err)
	}
	if _, err := o.goOutput(ctx, source, r.goArguments(exe)...); err != nil {
		return fmt.Errorf("building %s: %w", r.Name, err)
	}
	info, err := r.inspectProgram(exe)
	if err != nil {
		return err
	}
	raw, stored, err := packProgram(exe, filepath.Join(o.payloadDir(), store.FileOf(r.Name)))
	if err != nil {
		return err
	}
	o.logf("built %s in %s: %d MB, %d MB stored", r.Name, time.Since(begin).Round(time.Second), megabytes(raw.Size), megabytes(stored.Size))
	return o.keepStamp(stamp{Key: r.key, Entry: r.listEntry(raw, stored), Info: info.String()})
}

func megabytes(size int64) int64 { return (size + 500_000) / 1_000_000 }

func (r recipe) listEntry(raw, stored store.Blob) store.Entry {
	e := store.Entry{Name: r.Name, Path: r.Path, Module: r.Module, Version: r.Version, Go: r.release, Raw: raw, Stored: stored}
	if r.Name == payload.Agent {
		e.Path = payload.AgentPath(raw.Digest)
	}
	return e
}

// writeList lists the executables that are current and removes all others.
func (o Options) writeList(all []recipe) error {
	list := store.List{Schema: store.Schema}
	var stamps []stamp
	for _, r := range all {
		if s, ok := o.currentStamp(r); ok {
			stamps = append(stamps, s)
			list.Executables = append(list.Executables, s.Entry)
		}
	}
	data, err := list.Encode()
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(o.payloadDir(), store.ListFile), data); err != nil {
		return err
	}
	if err := o.writeBills(stamps); err != nil {
		return err
	}
	o.logf("%s: %d of %d executables, %d MB", o.payloadDir(), len(stamps), len(all), megabytes(storedSize(list)))
	return errors.Join(o.removeUnlisted(o.payloadDir(), store.ListFile, list, store.FileOf), o.removeUnlisted(o.sbomDir(), wholeBill, list, billOf))
}

func storedSize(l store.List) int64 {
	var size int64
	for _, e := range l.Executables {
		size += e.Stored.Size
	}
	return size
}

// removeUnlisted removes the files of a folder that belong to no listed executable: those of another build or of an
// interrupted one.
func (o Options) removeUnlisted(dir, index string, l store.List, file func(name string) string) error {
	keep := map[string]bool{index: true}
	for _, e := range l.Executables {
		keep[file(e.Name)] = true
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if keep[f.Name()] {
			continue
		}
		o.logf("removing %s: it belongs to another build", filepath.Join(dir, f.Name()))
		if err := os.RemoveAll(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (o Options) logf(format string, args ...any) {
	fmt.Fprintf(o.Progress, format+"\n", args...)
}

// availableMemory returns the available memory in bytes. If it is not known, it returns enough for one build.
func availableMemory() int64 {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return perBuild
	}
	defer file.Close() //nolint:errcheck // only read from
	n, err := memAvailable(bufio.NewScanner(file))
	if err != nil {
		return perBuild
	}
	return n
}

// memAvailable reads the line "MemAvailable:  123 kB" of proc(5).
func memAvailable(lines *bufio.Scanner) (int64, error) {
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[0] == "MemAvailable:" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.Join(errors.New("no MemAvailable"), lines.Err())
}
