// Package objects reads the objects of a cluster as raw documents, with the source of each: files and folders of
// manifests, a must-gather, standard input, or a live cluster.
//
//	wants --> Paths:   files -> documents -> items -> parse --wanted--.
//	                                                                 `-> Set
//	wants --> Cluster: Get or List -----------------------------------'
//
// It never interprets an object beyond its group, version, kind, name, namespace and labels, never judges an object
// that is not wanted, and never writes. A problem with an input is a finding. An error is returned only when reading
// was interrupted (a lost connection, a cancelled context).
package objects

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"wmco/bundle"
)

// Object is a Kubernetes object as it was found.
type Object struct {
	bundle.Ref
	Group, Version string
	// JSON is the whole object with sorted keys, without metadata.managedFields. Secrets are not masked.
	JSON []byte
	// Content is the digest of the object without the metadata that the API server maintains; empty where that was not
	// made yet.
	Content bundle.Digest
}

// Want selects objects that a caller needs.
type Want struct {
	// Group, Version and Kind are what the caller can read. An object of the same group and kind in another version
	// is a finding.
	Group, Version, Kind string
	// Namespace is empty for any namespace and for kinds without one.
	Namespace string
	// Names and NamePrefix select by name: one of Names, or a name that begins with NamePrefix. All names if both are
	// empty.
	Names      []string
	NamePrefix string
	// OnlyHere are those of Names that an object of another namespace has by mistake alone.
	OnlyHere []string
	// Labels are labels that the object must have, with these values.
	Labels map[string]string
	// Optional reports whether a cluster may lack the kind.
	Optional bool
	// Bounded reports whether whoever has little rights fills the kind, as kubelets do Events and mirror pods: of a
	// live cluster it is read in parts, and more than boundedBytes is a finding.
	Bounded bool
	// Unique reports whether no other API group is known to have a kind of this name, so that another group is a
	// mistake.
	Unique bool
}

// Set is the result of a reader.
type Set struct {
	// Objects are sorted by group, kind, namespace and name; no two are the same in all four.
	Objects []Object
	// Findings are sorted, the most severe first. An object with a finding of severity error may be missing.
	Findings bundle.Findings
	// Replaced are the objects of earlier paths or readers that differ from the one in Objects, in the order in which
	// they were read.
	Replaced []Object
	// Unused are the paths that have neither a wanted object nor a finding, in the order in which they were given.
	Unused []string
}

// Reader reads all the objects that a caller wants.
type Reader interface {
	Read(ctx context.Context, wants []Want) (Set, error)
}

// identity is equal for two copies of one object.
type identity struct{ group, kind, namespace, name string }

func (o Object) objectIdentity() identity { return identity{o.Group, o.Kind, o.Namespace, o.Name} }

func compareIdentities(a, b identity) int {
	return cmp.Or(
		cmp.Compare(a.group, b.group),
		cmp.Compare(a.kind, b.kind),
		cmp.Compare(a.namespace, b.namespace),
		cmp.Compare(a.name, b.name),
	)
}

// comparePlaces orders objects by source and line.
func comparePlaces(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Line, b.Line))
}

// newSet returns the objects and the findings, sorted.
func newSet(found map[identity]Object, findings bundle.Findings) Set {
	objects := make([]Object, 0, len(found))
	for _, o := range found {
		objects = append(objects, o)
	}
	slices.SortFunc(objects, func(a, b Object) int { return compareIdentities(a.objectIdentity(), b.objectIdentity()) })
	return Set{Objects: objects, Findings: findings.Sorted()}
}

// admitsName reports whether the want selects an object of this name.
func (w Want) admitsName(name string) bool {
	if len(w.Names) == 0 && w.NamePrefix == "" {
		return true
	}
	return slices.Contains(w.Names, name) || w.NamePrefix != "" && strings.HasPrefix(name, w.NamePrefix)
}

// admitsNamespace reports whether the want selects an object in this namespace.
func (w Want) admitsNamespace(namespace string) bool {
	return w.Namespace == "" || w.Namespace == namespace
}

// admitsLabels reports whether the want selects an object with these labels.
func (w Want) admitsLabels(labels map[string]string) bool {
	for key, value := range w.Labels {
		if have, ok := labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}

// admitsObject reports whether the want selects the object. It does not look at the version.
func (w Want) admitsObject(p parsed) bool {
	return w.Group == p.Group && w.Kind == p.Kind &&
		w.admitsNamespace(p.Namespace) && w.admitsName(p.Name) && w.admitsLabels(p.labels)
}
