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
	// Inputs are those that the bundle was made from, of those whose deletion has to be confirmed.
	Inputs []published.Input
	// Payload is the digest of the executables that it was made with.
	Payload bundle.Digest
	// PayloadKept is true while the bundle has the executables that are published for the node, because newer ones are
	// not on its host yet.
	PayloadKept bool
	// Content is the bundle itself, which is only read. It may be without its provenance, and is nil for the urgent part
	// of a bundle.
	Content *bundle.Bundle
	// Target is that of plan.TargetDigest.
	Target bundle.Digest
	// From is what of its Node the bundle was rendered from; empty is not compared.
	From bundle.Digest
}

// Observed is what the cluster has.
type Observed struct {
	Nodes []Node
	// Secrets are the layers' Secrets: the label of the layer by the name of the Secret.
	Secrets map[string]string
	// Replaced is for how long a Secret has been of a layer that is wanted no longer, by its name. It has no Secret
	// of a layer that was wanted when it was last looked at.
	Replaced map[string]Age
	// Readable are the names that the Role lists, Readers the users that its binding lists; both sorted. Nil where
	// there is no such object.
	Readable, Readers []string
	// Granted is when Readers were written last, by the API server's clock; zero where that is not known.
	Granted time.Time
	// roleVersion and bindingVersion are those that were read; empty where there is no such object.
	roleVersion, bindingVersion string
}

// Node is the published state of a Windows node and the report of its agent.
type Node struct {
	Name string
	// Desired is the decoded annotation, whoever has written it, Report the report of the node agent; zero where there is
	// none that can be read.
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
	// Replaced are the names of Secrets to note as replaced now, Aged those on which it is noted for how long they have
	// been, and Restored those whose notes are removed: their layer is wanted again.
	Replaced, Aged, Restored []string
	// Readable and Readers are set where the Role or its binding differ.
	Readable, Readers []string
	// Check are Secrets that a node could not use: they are replaced if they hold anything else.
	Check []Secret
	// Damaged are the names of those of them that held anything else, and were replaced. Make does not know.
	Damaged []string
	// Delete are the names of Secrets that no node needs.
	Delete []string
}

// Secret is one part of a layer.
type Secret struct {
	published.Part
	// Label is that of the layer.
	Label string
}

// IsZero reports whether nothing has to be written.
func (c Changes) IsZero() bool {
	return len(c.Create) == 0 && len(c.Replaced) == 0 && len(c.Aged) == 0 && len(c.Restored) == 0 &&
		c.Readable == nil && c.Readers == nil && len(c.Check) == 0 && len(c.Delete) == 0
}

// revokesAccess reports whether a node loses anything that it could have now. A Node or a layer that was not seen yet
// would lose it by mistake.
func (c Changes) revokesAccess(o Observed) bool {
	lacks := func(now, before []string) bool {
		return now != nil && slices.ContainsFunc(before, func(x string) bool { return !slices.Contains(now, x) })
	}
	return len(c.Delete) > 0 || lacks(c.Readable, o.Readable) || lacks(c.Readers, o.Readers)
}

// PlanChanges decides. Layers that are wanted are kept and readable; those that a node has or is told to have, for as
// long as ReadableFor and KeptFor say.
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

// hasFailed reports whether the node reports that it cannot use this bundle. One that waits for room has nothing to report
// about layers.
func (n *Node) hasFailed(b bundle.Digest) bool {
	return n.Desired.Bundle == b && n.Report.State == published.StateFailed && n.Report.Desired == b &&
		!n.Report.WaitsForRoom()
}

// areAllPublished reports whether every node has been told of the bundle that is wanted for it.
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

// How long an unwanted layer stays for nodes that report it as applied or are told to have it. Reports
// are not trusted, so that has an end, which the operator alone decides: it counts for how long it has not wanted the
// layer (Age).
const (
	// ReadableFor is how long nodes may fetch it: one that was told of it a moment before its end does so within
	// minutes. An agent that starts again does not need what its host has already.
	ReadableFor = 24 * time.Hour
	// KeptFor is how long the operator keeps it for itself, to know what a change costs and what of it is urgent. For a
	// node that has had no update for longer, it asks the node's agent.
	KeptFor = 90 * 24 * time.Hour
)

// needs are the labels of layers that are wanted, and of those that nodes have or are told to have by their
// annotations.
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

// decideUse decides about a Secret of a layer.
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

// noteReplaced notes that a Secret that stays is of a layer that is wanted no longer, and for how long it has been.
// Where nothing is wanted for any node, because all inputs are refused, published layers stay.
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

// decideLayers decides which Secrets are created, noted, deleted and readable.
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

// grantedLong is longer than a cache of Nodes, by which access is given, may be behind.
const grantedLong = time.Hour

// mayRead reports whether a node may read layers: its host is known, or it has been able to for long and its Node was
// there then, as after an upgrade of the operator, until each host was asked. A Node that was made since is another one:
// whoever has the kubelet's certificate of a host that was removed makes it again.
func (o *Observed) mayRead(n *Node) bool {
	return n.Known || n.Created.Add(grantedLong).Before(o.Granted) && slices.Contains(o.Readers, NodeUser(n.Name))
}

// decideReaders keeps the subjects of the binding in step with the nodes that may read.
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
