package bundle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Schema is the version of the manifest's format. A reader refuses a newer one.
const Schema = 1

// Stage is how far a host has become a node.
type Stage string

const (
	// StageJoin is before the node exists: what it takes to join.
	StageJoin Stage = "join"
	// StageJoined is once the node exists: everything. What needs the facts of its host waits for them.
	StageJoined Stage = "joined"
)

// LayerKind is which of the two layers a layer is.
type LayerKind string

const (
	// LayerCluster is the same for every node of one platform and stage. It holds the secrets.
	LayerCluster LayerKind = "cluster"
	// LayerNode belongs to one node and holds no secrets.
	LayerNode LayerKind = "node"
)

// Provenance is which objects caused an entry, by EntryID. It is kept beside the manifest and never enters a digest:
// renaming an object changes no node.
type Provenance map[EntryID][]Ref

// With returns the provenance of both.
func (p Provenance) With(other Provenance) Provenance {
	all := maps.Clone(p)
	maps.Copy(all, other)
	return all
}

// EntryID names an entry within a bundle: "file C:\k\kubelet.conf".
type EntryID string

// EntryKind is the kind of an entry, the first word of its ID.
type EntryKind string

// ID returns the ID of the entry of this kind.
func (k EntryKind) ID(name string) EntryID { return EntryID(string(k) + " " + name) }

// Bundle is the complete desired state of one node.
type Bundle struct {
	Cluster    Layer
	Node       Layer
	Provenance Provenance
}

// ErrInconsistent is wrapped by the errors of Check.
var ErrInconsistent = errors.New("inconsistent bundle")

// Layers returns both layers, the cluster's first.
func (b Bundle) Layers() []Layer { return []Layer{b.Cluster, b.Node} }

// Files returns the files of both layers by path.
func (b Bundle) Files() []File {
	return collectSorted(b, func(l Layer) []File { return l.Files }, func(f File) string { return FoldPath(f.Path) })
}

// Services returns the services of both layers by name.
func (b Bundle) Services() []Service {
	return collectSorted(b, func(l Layer) []Service { return l.Services }, func(s Service) string { return s.Name })
}

// Payload returns the executables of both layers by path.
func (b Bundle) Payload() []Payload {
	return collectSorted(b, func(l Layer) []Payload { return l.Payload }, func(p Payload) string { return FoldPath(p.Path) })
}

func collectSorted[E any](b Bundle, list func(Layer) []E, key func(E) string) []E {
	all := slices.Concat(list(b.Cluster), list(b.Node))
	slices.SortStableFunc(all, func(x, y E) int { return strings.Compare(key(x), key(y)) })
	return all
}

// Normalize sorts every list of the layer by the entries' names, which makes the encoding canonical. Lists inside an
// entry keep their order, because it has a meaning.
func (l *Layer) Normalize() {
	for _, k := range kinds {
		k.sort(l)
	}
}

// Check returns an error for the first thing that makes a layer invalid: an illegal or duplicate path, a bad digest, a
// secret in the node layer.
func (l *Layer) Check() error {
	for _, k := range kinds {
		if err := k.checkOrder(l); err != nil {
			return fmt.Errorf("%w: %s layer: %w", ErrInconsistent, l.Kind, err)
		}
	}
	if l.NodeName != "" && (l.Kind != LayerNode || !isNodeName(l.NodeName)) {
		return fmt.Errorf("%w: %s layer: %.100q is not the name of its node", ErrInconsistent, l.Kind, l.NodeName)
	}
	return l.checkSecrets()
}

// isNodeName reports whether the API server accepts a name for a Node: a DNS subdomain (RFC 1123).
func isNodeName(name string) bool {
	const longest = 253
	allowed := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' }
	return len(name) <= longest && !strings.ContainsFunc(name, func(r rune) bool { return !allowed(r) })
}

func (l *Layer) checkSecrets() error {
	for _, f := range l.Files {
		if f.Secret && l.Kind == LayerNode {
			return fmt.Errorf("%w: the node layer holds secret file %s", ErrInconsistent, f.Path)
		}
		if f.Secret && f.Access != AccessAdmins {
			return fmt.Errorf("%w: secret file %s is readable by users", ErrInconsistent, f.Path)
		}
	}
	if l.Kind == LayerNode && len(l.Environments)+len(l.Variables) > 0 {
		return fmt.Errorf("%w: the node layer holds environment variables", ErrInconsistent)
	}
	return nil
}

// Check returns an error for the first thing that makes the bundle invalid: that of a layer, an entry in both layers,
// two entries of which no host can have both, a service that depends on itself or that needs something that does not
// exist.
func (b Bundle) Check() error {
	for _, l := range b.Layers() {
		if err := l.Check(); err != nil {
			return err
		}
	}
	seen := map[string]EntryID{}
	for _, l := range b.Layers() {
		for _, id := range l.IDs() {
			// Windows compares the names of paths, services and variables without regard to case.
			if other, ok := seen[FoldPath(string(id))]; ok {
				return fmt.Errorf("%w: %s is in both layers, as %s", ErrInconsistent, id, other)
			}
			seen[FoldPath(string(id))] = id
		}
	}
	if err := b.checkPaths(); err != nil {
		return err
	}
	if err := b.checkState(); err != nil {
		return err
	}
	if err := b.checkServices(); err != nil {
		return err
	}
	return b.checkCycles()
}

func (b Bundle) checkServices() error {
	services, environments := map[string]bool{}, map[string]bool{}
	for _, s := range b.Services() {
		services[FoldPath(s.Name)] = true
	}
	for _, e := range b.Cluster.Environments {
		environments[e.Name] = true
	}
	for _, s := range b.Services() {
		for _, d := range s.Dependencies {
			if !services[FoldPath(d)] {
				return fmt.Errorf("%w: service %s depends on %s, which is not in the bundle", ErrInconsistent, s.Name, d)
			}
		}
		if s.Environment != "" && !environments[s.Environment] {
			return fmt.Errorf(
				"%w: service %s uses environment %s, which is not in the bundle", ErrInconsistent, s.Name,
				s.Environment,
			)
		}
	}
	return nil
}

// IDs returns the names of all entries of the layer, in the order of its lists.
func (l *Layer) IDs() []EntryID {
	var ids []EntryID
	for _, k := range kinds {
		ids = append(ids, k.entryIDs(l)...)
	}
	return ids
}
