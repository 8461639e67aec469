package plan

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
)

// CheckKept checks a path of a journal. A parent of a root is allowed, because a run creates it if it does not exist.
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
// place is refused.
func managedRoots() []string { return []string{ProgramRoot, `C:\var\log`, `C:\var\lib`} }

// KubeletKeys is the folder in which the kubelet keeps its private keys. The kubelet would create it with inherited
// access, so that all users could read the keys (k8s.io/client-go util/certificate: modes of files do nothing on
// Windows).
const KubeletKeys = `C:\var\lib\kubelet\pki`

// RuntimeFolder holds the images of containerd (service RuntimeService), and programs that it prefers to others. containerd does not check the owner of an
// existing folder (github.com/containerd/containerd/v2/cmd/containerd/server, CreateTopLevelDirectories). All users may create folders in C:\ProgramData.
const (
	RuntimeService = "containerd"
	RuntimeFolder  = `C:\ProgramData\containerd`
	// RuntimePrograms is the folder of these programs (github.com/containerd/containerd/v2/plugins/services/opt).
	RuntimePrograms = RuntimeFolder + `\root\opt`
)

// ProgramRoot is the root with the programs of services.
const ProgramRoot = `C:\k`

// MovedInPlace reports whether any user could create this folder first. Such a folder is created elsewhere and moved to
// its place.
func MovedInPlace(path string) bool {
	return slices.Contains(GuardedFolders(), path) || path == RuntimeFolder
}

// GuardedFolders returns the roots and the folders above them, outer ones first. The owner of any of them can change
// what is in a root.
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
