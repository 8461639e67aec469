package plan

import (
	"maps"
	"slices"
	"strings"

	"wmco/bundle"
)

// Observed is what is on a host, as far as a target asks.
type Observed struct {
	// Files by bundle.FoldPath. Of files whose size tells that they differ, the contents are not known.
	Files    map[string]ObservedFile
	Settings map[bundle.EntryID]Setting
	Services map[string]ServiceState // by name in lower case
	// Folders are what stands in folders that were listed, by the folded path of the folder.
	Folders map[string][]FileInfo
}

type ObservedFile struct {
	FileInfo
	// SHA256 is empty where the file was not read.
	SHA256 string
}

func (seen Observed) Service(name string) ServiceState { return seen.Services[strings.ToLower(name)] }

func (seen Observed) File(path string) ObservedFile { return seen.Files[bundle.FoldPath(path)] }

// foreign are files in folders of ours that nobody asked for: neither the target, nor rules for state and logs, nor
// leftovers of a cut.
func (seen Observed) foreign(t *Target) (foreign, leftovers []string) {
	wanted := t.Names()
	for _, folder := range slices.Sorted(maps.Keys(seen.Folders)) {
		if t.Exclusive[folder] || t.insideExclusive(folder) || t.Logs[folder] {
			continue
		}
		for _, f := range seen.Folders[folder] {
			switch {
			case Leftover(f.Path):
				leftovers = append(leftovers, f.Path)
			case wanted[fileName(f.Path)] || t.isState(f.Path) || t.Logs[bundle.FoldPath(f.Path)] || t.holdsState(f.Path):
			default:
				foreign = append(foreign, f.Path)
			}
		}
	}
	return foreign, leftovers
}

// isState tells whether programs on the host write the path.
func (t *Target) isState(path string) bool {
	key := bundle.FoldPath(path)
	return slices.ContainsFunc(t.State, func(s bundle.State) bool {
		dir := bundle.FoldPath(s.Path)
		if s.Pattern != "" {
			return bundle.FoldPath(bundle.Dir(path)) == dir && Matches(s.Pattern, path)
		}
		return key == dir || strings.HasPrefix(key, dir+`\`)
	})
}

// holdsState tells whether state of programs, or logs, are somewhere in a folder.
func (t *Target) holdsState(dir string) bool {
	inside := bundle.FoldPath(dir) + `\`
	for log := range t.Logs {
		if strings.HasPrefix(log, inside) {
			return true
		}
	}
	return slices.ContainsFunc(t.State, func(s bundle.State) bool { return strings.HasPrefix(bundle.FoldPath(s.Path), inside) })
}

// insideExclusive tells whether a folded path is below an exclusive folder.
func (t *Target) insideExclusive(key string) bool {
	for dir := range t.Exclusive {
		if strings.HasPrefix(key, dir+`\`) {
			return true
		}
	}
	return false
}
