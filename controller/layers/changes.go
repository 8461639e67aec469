package layers

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// Wanted is what one node should get: its bundle, with the layers as they are published.
type Wanted struct {
	Node    string
	Bundle  bundle.Digest
	Cluster *published.Packed
	Own     published.Packed
	// Inputs are the inputs of the bundle whose deletion needs a confirmation.
	Inputs []published.Input
	// Payload is the digest of the executables that it was made with.
	Payload bundle.Digest
	// PayloadKept is true while the bundle refers to the old executables, because the new ones are not on the host yet.
	PayloadKept bool
	// Content is the bundle itself, which is only read. It may lack the provenance. It is nil for a bundle that has only
	// the urgent changes.
	Content *bundle.Bundle
	// Target is the result of plan.TargetDigest.
	Target bundle.Digest
	// From identifies the fields of the Node that the bundle was rendered from. If it is empty, they are not compared.
	From bundle.Digest
}

// Observed is what the cluster has.
type Observed struct {
	Nodes []Node
	// Secrets are the layers' Secrets: the label of the layer by the name of the Secret.
	Secrets map[string]string
	// Replaced has the ages of obsolete layers, by the name of the Secret. A wanted layer has no entry.
	Replaced map[string]Age
	// Readable are the names that the Role lists, Readers the users that its binding lists; both sorted. Nil if the
	// object does not exist.
	Readable, Readers []string
	// Granted is when Readers were last written, by the API server's clock; zero if it is not known.
	Granted time.Time
	// roleVersion and bindingVersion are resource versions; empty if the object does not exist.
	roleVersion, bindingVersion string
}

// Node is the published state of a Windows node and the report of its agent.
type Node struct {
	Name string
	// Desired is the decoded annotation desired-bundle, which another client may have written. Report is the report of the
	// node agent. Each is zero if it cannot be read.
	Desired published.Desired
	Report  published.Report
	// Known reports whether the operator knows the host of the Node, Created is when the Node was made.
	Known   bool
	Created time.Time
}

// Changes bring the cluster to the wanted state, in the order in which they must be made. Zero values are no
// change.
type Changes struct {
	// Create are the Secrets that are missing, by name, each with the layer that it is a part of.
	Create []Secret
	// Replaced are the names of Secrets to mark as replaced, Aged those whose age is to be written, and Restored those
	// whose mark and age are to be removed, because their layer is wanted again.
	Replaced, Aged, Restored []string
	// Readable and Readers are set if the Role or its binding differ.
	Readable, Readers []string
	// Check are Secrets that a node could not use. They are replaced if they differ from the published layer.
	Check []Secret
	// Damaged are the Secrets of Check that were replaced. PublishLayers sets it.
	Damaged []string
	// Delete are the names of Secrets that no node needs.
	Delete []string
}

// Secret is one part of a layer.
type Secret struct {
	published.Part
	// Label identifies the layer.
	Label string
}

// IsZero reports whether nothing has to be written.
func (c Changes) IsZero() bool {
	return len(c.Create) == 0 && len(c.Replaced) == 0 && len(c.Aged) == 0 && len(c.Restored) == 0 &&
		c.Readable == nil && c.Readers == nil && len(c.Check) == 0 && len(c.Delete) == 0
}

// revokesAccess reports whether a node loses access or a Secret. Stale caches could cause that by mistake.
func (c Changes) revokesAccess(o Observed) bool {
	lacks := func(now, before []string) bool {
		return now != nil && slices.ContainsFunc(before, func(x string) bool { return !slices.Contains(now, x) })
	}
	return len(c.Delete) > 0 || lacks(c.Readable, o.Readable) || lacks(c.Readers, o.Readers)
}

// PlanChanges returns the changes for the wanted bundles. A layer that is no longer wanted, but that a node reports or was
// told to apply, stays readable for ReadableFor and is kept for KeptFor.
func PlanChanges(wanted []Wanted, o Observed) Changes {
	var c Changes
	parts := map[string]Secret{}
	nodes := make(map[string]*Node, len(o.Nodes))
	for i := range o.Nodes {
		if n := &o.Nodes[i]; o.mayRead(n) {
			nodes[n.Name] = n
		}
	}
	var shared *published.Packed // most nodes have the cluster layer of the one before
	for i := range wanted {
		w := &wanted[i]
		have, exists := nodes[w.Node]
		if !exists {
			continue
		}
		if w.Cluster != shared {
			shared = w.Cluster
			addSecrets(parts, w.Cluster)
		}
		addSecrets(parts, &w.Own)
		if have.hasFailed(w.Bundle) {
			c.Check = append(c.Check, w.layerSecrets()...)
		}
	}
	c.decideLayers(parts, needs{wanted: labelsOf(wanted), claimed: digestsInUse(nodes)}, o)
	c.decideReaders(o)
	c.Check = uniqueSecrets(slices.DeleteFunc(c.Check, func(s Secret) bool { return o.Secrets[s.Name] == "" }))
	return c
}

// DesiredAnnotation returns the annotation of a node when the bundle is published there; namespace is that of the
// Secrets.
func (w Wanted) DesiredAnnotation(namespace string, permit bundle.Impact) published.Desired {
	return published.Desired{Bundle: w.Bundle, MaxImpact: permit, Namespace: namespace, Cluster: w.Cluster.Layer,
		Node: w.Own.Layer, Inputs: w.Inputs, Payload: w.Payload}
}

// hasFailed reports whether the node reports that it cannot use this bundle. Waiting for disk space does not count.
func (n *Node) hasFailed(b bundle.Digest) bool {
	return n.Desired.Bundle == b && n.Report.State == published.StateFailed && n.Report.Desired == b &&
		!n.Report.WaitsForRoom()
}

// areAllPublished reports whether each node has been told of its wanted bundle.
func areAllPublished(wanted []Wanted, nodes []Node) bool {
	told := make(map[string]bundle.Digest, len(nodes))
	for i := range nodes {
		told[nodes[i].Name] = nodes[i].Desired.Bundle
	}
	return !slices.ContainsFunc(wanted, func(w Wanted) bool { return told[w.Node] != w.Bundle })
}

// addSecrets adds the parts of a layer by their names.
func addSecrets(parts map[string]Secret, l *published.Packed) {
	for _, p := range l.Secrets {
		parts[p.Name] = Secret{Part: p, Label: l.Label()}
	}
}

func (w Wanted) layerSecrets() []Secret {
	var list []Secret
	for _, l := range []published.Packed{*w.Cluster, w.Own} {
		for _, p := range l.Secrets {
			list = append(list, Secret{Part: p, Label: l.Label()})
		}
	}
	return list
}

// How long an unwanted layer stays for nodes that report it as applied or were told to apply it. Reports are not trusted,
// so the operator itself limits this time (Age).
const (
	// ReadableFor is how long nodes may still fetch it. A node that was just told of the layer fetches it within minutes.
	// An agent that restarts does not need layers that its host has.
	ReadableFor = 24 * time.Hour
	// KeptFor is how long the operator keeps it to compute the impact and the urgent part of a change. For a node without
	// an update for longer, it asks the node agent.
	KeptFor = 90 * 24 * time.Hour
)

// needs are the labels of wanted layers, and of layers that nodes report or were told to apply (claimed).
type needs struct{ wanted, claimed map[string]bool }

func labelsOf(wanted []Wanted) map[string]bool {
	labels := make(map[string]bool, len(wanted))
	for i := range wanted {
		w := &wanted[i]
		labels[w.Cluster.Label()], labels[w.Own.Label()] = true, true
	}
	return labels
}

func digestsInUse(nodes map[string]*Node) map[string]bool {
	labels := make(map[string]bool, len(nodes))
	add := func(d bundle.Digest) {
		if d != "" {
			labels[published.Label(d)] = true
		}
	}
	for _, n := range nodes {
		add(n.Desired.Cluster.Digest)
		add(n.Desired.Node.Digest)
		for _, d := range n.Report.Layers {
			add(d)
		}
	}
	return labels
}

// use is who may still use a Secret.
type use int

const (
	useNone use = iota
	useOperator
	useNodes
)

// decideUse returns who may still use a Secret of a layer.
func (n needs) decideUse(name string, o Observed) use {
	label := o.Secrets[name]
	replaced := o.Replaced[name]
	switch {
	case n.wanted[label]:
		return useNodes
	case !n.claimed[label]:
		return useNone
	case replaced.For < ReadableFor:
		return useNodes
	case replaced.For < KeptFor:
		return useOperator
	}
	return useNone
}

// noteReplaced decides whether a kept Secret is marked as replaced, gets its age, or loses its mark. If nothing is wanted,
// because all inputs are refused, it is not marked.
func (c *Changes) noteReplaced(name string, n needs, o Observed) {
	age, noted := o.Replaced[name]
	switch wanted := n.wanted[o.Secrets[name]]; {
	case wanted && noted:
		c.Restored = append(c.Restored, name)
	case !wanted && !noted && len(n.wanted) > 0:
		c.Replaced = append(c.Replaced, name)
	case !wanted && noted && age.mustBeNoted():
		c.Aged = append(c.Aged, name)
	}
}

// decideLayers decides which Secrets are created, marked, deleted and readable.
func (c *Changes) decideLayers(parts map[string]Secret, n needs, o Observed) {
	readable := []string{}
	for _, name := range slices.Sorted(maps.Keys(o.Secrets)) {
		switch n.decideUse(name, o) {
		case useNodes:
			readable = append(readable, name)
		case useOperator:
		case useNone:
			c.Delete = append(c.Delete, name)
			continue
		}
		c.noteReplaced(name, n, o)
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if _, ok := o.Secrets[name]; !ok {
			c.Create = append(c.Create, parts[name])
			readable = append(readable, name)
		}
	}
	slices.Sort(readable)
	if o.Readable == nil || !slices.Equal(readable, o.Readable) {
		c.Readable = readable
	}
}

// grantedLong is longer than the cache of Nodes, from which access is granted, may be stale.
const grantedLong = time.Hour

// mayRead reports whether a node may read layers: its host is known, or it was granted access long ago and the Node is
// older than that. The latter keeps access after an upgrade of the operator, until each host was asked. A newer Node is
// not trusted: the kubelet certificate of a removed host can create a Node of the same name.
func (o *Observed) mayRead(n *Node) bool {
	return n.Known || n.Created.Add(grantedLong).Before(o.Granted) && slices.Contains(o.Readers, NodeUser(n.Name))
}

// decideReaders updates the subjects of the binding to the nodes that may read.
func (c *Changes) decideReaders(o Observed) {
	users := make([]string, 0, len(o.Nodes))
	for i := range o.Nodes {
		if n := &o.Nodes[i]; o.mayRead(n) {
			users = append(users, NodeUser(n.Name))
		}
	}
	slices.Sort(users)
	if o.Readers == nil || !slices.Equal(users, o.Readers) {
		c.Readers = users
	}
}

// NodeUser is the user that a kubelet's client certificate names
// (kubernetes.io/docs/reference/access-authn-authz/node).
func NodeUser(node string) string { return "system:node:" + node }

func uniqueSecrets(list []Secret) []Secret {
	slices.SortFunc(list, func(a, b Secret) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(list, func(a, b Secret) bool { return a.Name == b.Name })
}
