package services

import (
	"slices"
	"strings"
	"time"

	"wmco/bundle"
)

// process is a process of a snapshot.
type process struct {
	ID     uint32
	Parent uint32
	// Program is the path of its file, or only the name if the path cannot be read.
	Program string
	// Created distinguishes it from a later process with the same id.
	Created time.Time
}

// servicePrograms returns the paths of the programs in the command line of a service, folded: its own, and those that a
// wrapper starts.
func servicePrograms(argv []string) []string {
	var paths []string
	for _, arg := range argv {
		path := bundle.FoldPath(arg)
		if bundle.CheckHostPath(arg) == nil && strings.HasSuffix(path, ".exe") {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// serviceProcesses returns the processes of a service: its main process, and the descendants of that which run one of
// the service's own programs. Descendants that run other programs may outlive the service. The shims of containerd
// must: pods keep running while containerd restarts.
//
// If main is 0, the service has no main process. Then it returns the processes that a wrapper left: they run one of the
// service's programs and their parents have ended.
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
		case main == 0 && isOrphan(p, known) || main != 0 && isDescendant(p, main, known):
			found = append(found, p)
		}
	}
	return found
}

// isOrphan reports whether the parent has ended. If a process with its id is younger, Windows has reused the id.
func isOrphan(p process, known map[uint32]process) bool {
	parent, ok := known[p.Parent]
	return !ok || parent.Created.After(p.Created)
}

// isDescendant reports whether main started the process, directly or through other processes.
func isDescendant(p process, main uint32, known map[uint32]process) bool {
	for range known { // Windows reuses ids, so the parents could form a cycle
		if isOrphan(p, known) {
			return false
		}
		if p.Parent == main {
			return true
		}
		p = known[p.Parent]
	}
	return false
}
