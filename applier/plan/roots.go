package plan

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
)

// CheckKept checks a path that only a journal names. A parent of the roots is allowed: at most it was created.
func CheckKept(path string) error {
	if err := bundle.CheckHostPath(path); err != nil {
		return err
	}
	isParent := slices.ContainsFunc(managedRoots(),
		func(root string) bool { return strings.HasPrefix(bundle.FoldPath(root), bundle.FoldPath(path)+`\`) })
	if !inRoots(path) && !isParent && bundle.FoldPath(path) != bundle.FoldPath(RuntimeFolder) {
		return fmt.Errorf("%w: %s is in none of %s", bundle.ErrPath, path, strings.Join(managedRoots(), ", "))
	}
	return nil
}

// managedRoots are the folders in which bundles may have files, folders, state and logs. A bundle that names another
// place is refused, whoever sent it.
func managedRoots() []string { return []string{ProgramRoot, `C:\var\log`, `C:\var\lib`} }

// KubeletKeys is the state in which the kubelet keeps the private keys of its certificates. It would make the folder
// without an access of its own, so that all users could read them (k8s.io/client-go util/certificate: modes of files do
// nothing on Windows).
const KubeletKeys = `C:\var\lib\kubelet\pki`

// RuntimeFolder is where containerd, the service of the name RuntimeService, keeps images, and programs that it finds before others. It takes the folder as it
// is (github.com/containerd/containerd/v2/cmd/containerd/server, CreateTopLevelDirectories), and in C:\ProgramData every user may make one.
const (
	RuntimeService = "containerd"
	RuntimeFolder  = `C:\ProgramData\containerd`
	// RuntimePrograms is where it finds them (github.com/containerd/containerd/v2/plugins/services/opt).
	RuntimePrograms = RuntimeFolder + `\root\opt`
)

// ProgramRoot is the root with the programs of services.
const ProgramRoot = `C:\k`

// MovedInPlace reports whether a folder is one of those that every user may make before it is made: it is moved to its
// place.
func MovedInPlace(path string) bool {
	return slices.Contains(GuardedFolders(), path) || path == RuntimeFolder
}

// GuardedFolders returns the roots and the folders above them, outer ones first. Whoever owns one of them decides what
// is in a root.
func GuardedFolders() []string {
	var list []string
	for _, root := range managedRoots() {
		var above []string
		for dir := root; !IsRoot(dir); dir = bundle.Dir(dir) {
			above = append(above, dir)
		}
		for _, dir := range slices.Backward(above) {
			if !slices.Contains(list, dir) {
				list = append(list, dir)
			}
		}
	}
	return list
}

// inRoots reports whether a path is in one of the roots or is one. The path is canonical (bundle.CheckPath), so it has
// no `..`.
func inRoots(path string) bool {
	key := bundle.FoldPath(path)
	return slices.ContainsFunc(managedRoots(), func(root string) bool {
		root = bundle.FoldPath(root)
		return key == root || strings.HasPrefix(key, root+`\`)
	})
}

// CheckRoots returns an error for the first path of a bundle that is in none of the roots.
func CheckRoots(b bundle.Bundle) error {
	for _, path := range bundlePaths(b) {
		if !inRoots(path) {
			return fmt.Errorf("%w: %s is in none of %s", bundle.ErrPath, path, strings.Join(managedRoots(), ", "))
		}
	}
	return nil
}

// bundlePaths returns everything that a bundle lets the applier write, make or remove, and the programs of services.
func bundlePaths(b bundle.Bundle) []string {
	var list []string
	for _, l := range b.Layers() {
		for _, d := range l.Directories {
			list = append(list, d.Path)
		}
		for _, f := range l.Files {
			list = append(list, f.Path)
		}
		for _, p := range l.Payload {
			list = append(list, p.Path)
		}
		for _, s := range l.State {
			list = append(list, s.Path)
		}
		for _, s := range l.Services {
			list = append(list, s.Argv[0])
			for _, log := range s.Logs {
				list = append(list, log.Path)
			}
		}
	}
	return list
}
