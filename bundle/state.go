package bundle

import (
	"fmt"
	"path"
	"strings"
)

func checkState(s State) error {
	if err := CheckPath(s.Path); err != nil {
		return err
	}
	if _, err := path.Match(s.Pattern, ""); err != nil {
		return fmt.Errorf("pattern: %q cannot be read", s.Pattern)
	}
	if s.Keep < 0 {
		return fmt.Errorf("keep: %d is negative", s.Keep)
	}
	return nil
}

// checkState returns an error for state that the applier would have to keep and to remove: in an exclusive folder
// everything that the bundle does not name is removed; and state of another cluster is removed whole, with what the
// bundle has in it.
func (b Bundle) checkState() error {
	var folders []string
	var managed []placed
	for _, l := range b.Layers() {
		for _, d := range l.Directories {
			if d.Exclusive {
				folders = append(folders, FoldPath(d.Path))
			}
		}
		managed = append(managed, l.placedEntries()...)
	}
	for i := range managed {
		managed[i].path = FoldPath(managed[i].path)
	}
	for _, l := range b.Layers() {
		for _, s := range l.State {
			if err := s.checkBeside(folders, managed); err != nil {
				return fmt.Errorf("%w: %s: path: %w", ErrInconsistent, KindState.ID(s.name()), err)
			}
		}
	}
	return nil
}

// checkBeside compares state with the exclusive folders and everything that is managed, whose paths are folded.
func (s State) checkBeside(exclusive []string, managed []placed) error {
	s.Path, s.Pattern = FoldPath(s.Path), FoldPath(s.Pattern)
	for _, folder := range exclusive {
		if isWithin(s.Path, folder) {
			return fmt.Errorf("it is in the exclusive folder %s, whose unmanaged files are removed", folder)
		}
	}
	for _, e := range managed {
		if s.holdsPath(e.path) {
			return fmt.Errorf("it holds %s, which is managed", e.kind.ID(e.path))
		}
	}
	return nil
}

// holdsPath reports whether the folded path of an entry is part of the state.
func (s State) holdsPath(entry string) bool {
	if s.Pattern == "" {
		return isWithin(entry, s.Path)
	}
	if Dir(entry) != s.Path {
		return false
	}
	ok, err := path.Match(s.Pattern, Base(entry))
	return err == nil && ok
}

// isWithin reports whether a folded path is a folder or in it.
func isWithin(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+`\`)
}
