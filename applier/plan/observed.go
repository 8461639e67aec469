package plan

import (
	"maps"
	"slices"
	"strings"

	"wmco/bundle"
)

// Observed is the state of a host, as far as a target needs to know.
type Observed struct {
	// Files are by bundle.FoldPath. Files whose size already differs are not read.
	Files    map[string]ObservedFile
	Settings map[bundle.EntryID]Setting
	Services map[string]ServiceState // by name in lower case
	// Folders are the contents of the folders that were listed, by the folded path of the folder.
	Folders map[string][]FileInfo
	// Unread are files that another program has locked. Their SHA256 is the last known one, or empty.
	Unread []string
}

// ObservedFile is a file with the digest of its contents.
type ObservedFile struct {
	FileInfo
	// SHA256 is empty if the file was not read.
	SHA256 string
}

// ServiceState returns a service by name. One that was not observed is ServiceAbsent.
func (observed Observed) ServiceState(name string) ServiceState {
	return observed.Services[strings.ToLower(name)]
}

// FileAt returns the entry at a path.
func (observed Observed) FileAt(path string) ObservedFile {
	return observed.Files[bundle.FoldPath(path)]
}

// foreignFiles returns the unmanaged files in managed folders: files that are in neither the target nor the rules for
// state and logs. Leftovers of an interruption are apart.
func (observed Observed) foreignFiles(t *Target) (foreign, leftovers []string) {
	wanted := t.FoldedNames()
	for _, folder := range slices.Sorted(maps.Keys(observed.Folders)) {
		if t.Exclusive[folder] || t.insideExclusive(folder) || t.Logs[folder] {
			continue
		}
		for _, f := range observed.Folders[folder] {
			switch {
			case IsLeftover(f.Path):
				leftovers = append(leftovers, f.Path)
			case wanted[fileName(f.Path)] || t.isState(f.Path) || t.Logs[bundle.FoldPath(f.Path)] || t.holdsState(f.Path):
			default:
				foreign = append(foreign, f.Path)
			}
		}
	}
	return foreign, leftovers
}

// isState reports whether programs on the host write the path.
func (t *Target) isState(path string) bool {
	key := bundle.FoldPath(path)
	return slices.ContainsFunc(t.State, func(s bundle.State) bool {
		dir := bundle.FoldPath(s.Path)
		if s.Pattern != "" {
			return bundle.FoldPath(bundle.Dir(path)) == dir && MatchesPattern(s.Pattern, path)
		}
		return key == dir || strings.HasPrefix(key, dir+`\`)
	})
}

// holdsState reports whether state of programs, or logs, are somewhere below a folder.
func (t *Target) holdsState(dir string) bool {
	inside := bundle.FoldPath(dir) + `\`
	for log := range t.Logs {
		if strings.HasPrefix(log, inside) {
			return true
		}
	}
	return slices.ContainsFunc(t.State, func(s bundle.State) bool { return strings.HasPrefix(bundle.FoldPath(s.Path), inside) })
}

// insideExclusive reports whether a folded path is below an exclusive folder.
func (t *Target) insideExclusive(key string) bool {
	for dir := range t.Exclusive {
		if strings.HasPrefix(key, dir+`\`) {
			return true
		}
	}
	return false
}
