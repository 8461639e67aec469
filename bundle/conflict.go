package bundle

import (
	"fmt"
	"slices"
	"strings"
)

// checkPaths returns an error for two entries of which no host can have both: two at one path, or one below a file.
func (b Bundle) checkPaths() error {
	files, all := map[string]EntryID{}, map[string]EntryID{}
	var paths []string
	for _, l := range b.Layers() {
		for _, e := range l.placedEntries() {
			key := FoldPath(e.path)
			id := e.kind.ID(e.path)
			if other, ok := all[key]; ok {
				return fmt.Errorf("%w: %s and %s are at one path", ErrInconsistent, other, id)
			}
			all[key] = id
			if e.kind != KindDirectory {
				files[key] = id
			}
			paths = append(paths, e.path)
		}
	}
	for _, path := range paths {
		for dir := Dir(path); len(dir) > len(`C:\`); dir = Dir(dir) {
			if file, ok := files[FoldPath(dir)]; ok {
				return fmt.Errorf("%w: %s is below %s", ErrInconsistent, all[FoldPath(path)], file)
			}
		}
	}
	return nil
}

// placed is an entry that a host puts at a path.
type placed struct {
	kind EntryKind
	path string
}

func (l *Layer) placedEntries() []placed {
	var all []placed
	for _, d := range l.Directories {
		all = append(all, placed{KindDirectory, d.Path})
	}
	for _, f := range l.Files {
		all = append(all, placed{KindFile, f.Path})
	}
	for _, p := range l.Payload {
		all = append(all, placed{KindPayload, p.Path})
	}
	return all
}

// checkCycles returns an error for services that depend on each other: Windows starts none of them
// (ERROR_CIRCULAR_DEPENDENCY).
func (b Bundle) checkCycles() error {
	services := map[string]Service{}
	for _, s := range b.Services() {
		services[FoldPath(s.Name)] = s
	}
	done := map[string]bool{}
	var visit func(key string, above []string) error
	visit = func(key string, above []string) error {
		s := services[key]
		above = append(slices.Clip(above), s.Name)
		if first := slices.IndexFunc(above[:len(above)-1], func(name string) bool { return FoldPath(name) == key }); first >= 0 {
			return fmt.Errorf("%w: services depend on each other: %s", ErrInconsistent, strings.Join(above[first:], " on "))
		}
		if done[key] {
			return nil
		}
		for _, d := range s.Dependencies {
			if err := visit(FoldPath(d), above); err != nil {
				return err
			}
		}
		done[key] = true
		return nil
	}
	for _, s := range b.Services() {
		if err := visit(FoldPath(s.Name), nil); err != nil {
			return err
		}
	}
	return nil
}
