package render

import (
	"slices"
	"strings"

	"wmco/bundle"
)

// Keep returns the cluster layer of nodes whose executables are those of has, while want is rendered for other
// executables: has, in which the entries whose rows are Portable are those of want. A command, or a file in the format
// of an executable, may be one that another version refuses; these stay as they are, and change with the executables.
// All portable entries are in the cluster layer, so a node keeps its own layer.
//
// An error means that the two do not fit together.
func Keep(has, want bundle.Layer) (bundle.Layer, error) {
	paths := portablePaths()
	has.Files = mergePortable(has.Files, want.Files, func(f bundle.File) bool { return paths.hasPath(f.Path) })
	has.Environments = mergePortable(has.Environments, want.Environments, func(e bundle.Environment) bool {
		return e.Name == proxyEnvironment
	})
	has.Variables, has.TrustedCAs = slices.Clone(want.Variables), slices.Clone(want.TrustedCAs)
	has.Normalize()
	return has, has.Check()
}

// mergePortable returns the entries of has that are not portable, and those of want that are.
func mergePortable[E any](has, want []E, portable func(E) bool) []E {
	list := slices.DeleteFunc(slices.Clone(has), portable)
	for _, e := range want {
		if portable(e) {
			list = append(list, e)
		}
	}
	return list
}

// pathSet has the paths of portable files, folded.
type pathSet map[string]bool

func portablePaths() pathSet {
	paths := pathSet{}
	for _, r := range Catalog() {
		if r.Portable && r.Kind == bundle.KindFile && !r.isFamily() {
			paths[bundle.FoldPath(r.Name)] = true
		}
	}
	return paths
}

// hasPath reports whether a file is portable. Those of registries are: their row stands for everything in the folder.
func (p pathSet) hasPath(path string) bool {
	path = bundle.FoldPath(path)
	return p[path] || strings.HasPrefix(path, bundle.FoldPath(dirRegistries)+`\`)
}
