package winhost

import (
	"slices"
	"strings"
	"time"

	"wmco/bundle"
)

// process is one of a snapshot of the machine's processes.
type process struct {
	ID     uint32
	Parent uint32
	// Program is the path of its file; only the name, where the path cannot be read.
	Program string
	// Created tells it from a later process that got the same id.
	Created time.Time
}

// servicePrograms are the paths of the programs in the command line of a service, folded: its own, and those that a wrapper
// starts.
func servicePrograms(argv []string) []string {
	var paths []string
	for _, arg := range argv {
		path := bundle.FoldPath(arg)
		if bundle.CheckPath(arg) == nil && strings.HasSuffix(path, ".exe") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// serviceProcesses are those of a service: its main process, and what that and its children started of the service's own
// programs. Other programs that it started may outlive it, as the shims of containerd must: pods run on while containerd
// restarts.
//
// A main of 0 is none; then these are the service's programs whose parents have ended, which a wrapper left behind.
func serviceProcesses(all []process, main uint32, programs []string) []process {
	known := map[uint32]process{}
	for _, p := range all {
		known[p.ID] = p
	}
	var found []process
	for _, p := range all {
		switch {
		case p.ID == main && main != 0:
			found = append(found, p)
		case !slices.Contains(programs, bundle.FoldPath(p.Program)):
		case main == 0 && orphan(p, known) || main != 0 && descends(p, main, known):
			found = append(found, p)
		}
	}
	return found
}

// orphan tells that the parent has ended. Its id may have been given to another process since, which is then younger.
func orphan(p process, known map[uint32]process) bool {
	parent, ok := known[p.Parent]
	return !ok || parent.Created.After(p.Created)
}

// descends tells that main started the process, or one of its children did.
func descends(p process, main uint32, known map[uint32]process) bool {
	for range known { // ids are given again, so a chain could be a circle
		if orphan(p, known) {
			return false
		}
		if p.Parent == main {
			return true
		}
		p = known[p.Parent]
	}
	return false
}
