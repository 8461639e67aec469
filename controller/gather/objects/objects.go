// Package objects reads the objects of a cluster as raw documents, and tells where each stands: in files and folders
// of manifests, in a must-gather, on standard input, or in a live cluster.
//
//	wants --> Paths:   files -> documents -> items -> cheap look --needed--> parse --.
//	                                                      `-- nobody wants it: skipped `-> Set
//	wants --> Cluster: Get or List ---------------------------------------------------'
//
// It never interprets an object beyond its group, version, kind, name, namespace and labels, never judges an object
// that nobody asked for, and never writes. What is wrong with an input is a finding; an error is returned only when
// the reading itself was cut off (a lost connection, a cancelled context).
package objects

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"wmco/bundle"
)

// Object is one Kubernetes object as found.
type Object struct {
	bundle.Ref
	Group, Version string
	// JSON is the whole object with sorted keys, without metadata.managedFields. Secrets are kept as they are.
	JSON []byte
}

// Want names objects that a caller needs.
type Want struct {
	// Group, Version and Kind are what the caller can read. An object of the same group and kind in another version
	// is a finding.
	Group, Version, Kind string
	// Namespace is empty for any namespace and for kinds without one.
	Namespace string
	// Names and NamePrefix choose by name: an object is wanted whose name is one of Names or begins with NamePrefix.
	// Both empty means all.
	Names      []string
	NamePrefix string
	// Labels must all be equal on the object.
	Labels map[string]string
	// Optional says that a cluster need not know the kind.
	Optional bool
}

// Set is what a reader found.
type Set struct {
	// Objects are sorted by group, kind, namespace and name; no two are the same in all four.
	Objects []Object
	// Findings are sorted, the gravest first. An object that one of severity error is about may be missing.
	Findings bundle.Findings
}

// Reader reads the objects that a caller wants, all at once.
type Reader interface {
	Read(ctx context.Context, wants []Want) (Set, error)
}

// identity is what makes two objects the same one.
type identity struct{ group, kind, namespace, name string }

func (o Object) identity() identity { return identity{o.Group, o.Kind, o.Namespace, o.Name} }

func compareIdentities(a, b identity) int {
	return cmp.Or(
		cmp.Compare(a.group, b.group),
		cmp.Compare(a.kind, b.kind),
		cmp.Compare(a.namespace, b.namespace),
		cmp.Compare(a.name, b.name),
	)
}

// comparePlaces orders objects by where they stand.
func comparePlaces(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Line, b.Line))
}

// newSet sorts what was found.
func newSet(found map[identity]Object, findings bundle.Findings) Set {
	objects := make([]Object, 0, len(found))
	for _, o := range found {
		objects = append(objects, o)
	}
	slices.SortFunc(objects, func(a, b Object) int { return compareIdentities(a.identity(), b.identity()) })
	return Set{Objects: objects, Findings: findings.Sorted()}
}

// admitsName tells whether the want takes an object of this name.
func (w Want) admitsName(name string) bool {
	if len(w.Names) == 0 && w.NamePrefix == "" {
		return true
	}
	return slices.Contains(w.Names, name) || w.NamePrefix != "" && strings.HasPrefix(name, w.NamePrefix)
}

// admitsNamespace tells whether the want takes an object of this namespace.
func (w Want) admitsNamespace(namespace string) bool {
	return w.Namespace == "" || w.Namespace == namespace
}

// admitsLabels tells whether the want takes an object with these labels.
func (w Want) admitsLabels(labels map[string]string) bool {
	for key, value := range w.Labels {
		if have, ok := labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}

// admits tells whether the want is for this object; the version is left to the caller.
func (w Want) admits(p parsed) bool {
	return w.Group == p.Group && w.Kind == p.Kind &&
		w.admitsNamespace(p.Namespace) && w.admitsName(p.Name) && w.admitsLabels(p.labels)
}
