package steps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

// observedNodes are what was observed of the nodes, by name, from their objects and one rendering. A node is observed again when its object has another
// version, when what this operator has signed for it is read differently, and with each rendering. What changes by itself is added at each call: for
// how long something has lasted, drains, pods, and Machines that are deleted.
type observedNodes struct {
	// rendering is that of Rendered.Number.
	rendering uint64
	nodes     map[string]*observedNode
	// again are the nodes that the call observed again.
	again map[string]bool
	// isFull is true after a node was observed mostObserved times: the next call observes all nodes.
	isFull bool
}

// mostObserved is how often a node is observed with what is kept of the others. Layers that nodes needed are kept in between, and a node chooses by
// what it reports which those are.
const mostObserved = 16

// observedNode is what was observed of a node.
type observedNode struct {
	uid     types.UID
	version string
	signed  signedDesired
	// count is how often the node was observed since all of them were.
	count int
	node  plan.Node
	// urgent is the bundle of node.Urgent.
	urgent layers.Wanted
	// isPartial is true where something could not be read: the node is observed again at the next call. Failed is why, if it is tried again by itself.
	isPartial bool
	failed    error
}

// signedDesired is what this operator has told a Node, and why what stands there is not that.
type signedDesired struct {
	published.Desired
	err error
}

// readSigned reads the annotation of a Node.
func (e *Executor) readSigned(node windowsnode.Node) signedDesired {
	d, err := e.Notary.OpenDesired(node.ID(), node.Annotations[published.DesiredAnnotation])
	return signedDesired{d, err}
}

// isSame reports whether two readings of one text gave the same.
func (s signedDesired) isSame(other signedDesired) bool {
	return s.Bundle == other.Bundle && s.Counter() == other.Counter() && (errors.Is(s.err, other.err) || errors.Is(other.err, s.err))
}

// beginCall begins a call with a rendering. It reports whether every node has to be observed.
func (o *observedNodes) beginCall(rendering uint64) bool {
	o.again = map[string]bool{}
	if o.nodes != nil && rendering != 0 && rendering == o.rendering && !o.isFull {
		return false
	}
	o.rendering, o.nodes, o.isFull = rendering, map[string]*observedNode{}, false
	return true
}

// lookupNode returns what was observed of this version of a node; false if it has to be observed.
func (o *observedNodes) lookupNode(node windowsnode.Node, signed signedDesired) (*observedNode, bool) {
	n, ok := o.nodes[node.Name]
	return n, ok && !n.isPartial && node.ResourceVersion != "" && n.version == node.ResourceVersion && n.uid == node.UID && n.signed.isSame(signed)
}

// keepNode keeps what this call observed.
func (o *observedNodes) keepNode(name string, n *observedNode) {
	n.count = 1
	if before, ok := o.nodes[name]; ok {
		n.count = before.count + 1
	}
	o.isFull = o.isFull || n.count >= mostObserved
	o.nodes[name], o.again[name] = n, true
}

// retainNodes forgets the nodes that are gone.
func (o *observedNodes) retainNodes(nodes map[string]windowsnode.Node) {
	maps.DeleteFunc(o.nodes, func(name string, _ *observedNode) bool { _, ok := nodes[name]; return !ok })
}

// observeChanged returns what the object of a node says, which is found out again only if something has changed.
func (e *Executor) observeChanged(ctx context.Context, node windowsnode.Node, r Rendered) *observedNode {
	signed := e.readSigned(node)
	if n, ok := e.observed.lookupNode(node, signed); ok {
		return n
	}
	n := e.observeObject(ctx, node, signed, r)
	e.observed.keepNode(node.Name, n)
	return n
}

// observeObject finds out what the object of a node says beside what is rendered for it.
func (e *Executor) observeObject(ctx context.Context, node windowsnode.Node, signed signedDesired, r Rendered) *observedNode {
	o := &observedNode{uid: node.UID, version: node.ResourceVersion, signed: signed}
	o.node = plan.ObserveNode(node, func(windowsnode.Node) (published.Desired, error) { return signed.Desired, signed.err })
	n, on := &o.node, published.Desired{}
	if signed.err == nil {
		on = signed.Desired
	}
	if !e.told.noteSigned(node, on, n.Report) { // an earlier signed annotation was put back: it is written again
		n.Published, n.Permitted, n.PublishedUrgent, n.Boot.Permitted = "", "", false, ""
	}
	n.Group.Platform = r.Platform
	w, ok := r.Wanted[node.Name]
	if !ok {
		return o
	}
	n.Wanted, n.Target = w.Bundle, w.Target
	n.PayloadPending, n.PayloadKept = node.IsPayloadPending(w.Payload), w.PayloadKept
	o.isPartial = true
	o.failed = e.tryForNode(ctx, "what is urgent for Node "+node.Name, func(ctx context.Context) (err error) {
		var known bool
		o.urgent, known, err = e.compareNode(ctx, n, node, destination{w, r.Urgent})
		o.isPartial = err != nil || !known
		return err
	})
	if o.failed != nil {
		o.failed = fmt.Errorf("preparing what is urgent for node %s: %w", node.Name, o.failed)
	}
	if n.State.Claim.IsZero() && isDamaged(on, w, e.Namespace) { // in a turn it waits for the end
		n.Published, n.Permitted = "", ""
	}
	return o
}

// addPassing adds what changes although the object of the node does not.
func (e *Executor) addPassing(ctx context.Context, n *plan.Node, node windowsnode.Node, deleted []machinev1beta1.Machine) (err error) {
	n.Seen, n.Silent = e.observations.observeNode(*n, e.Elapsed()), e.Heartbeats.IsSilent(node)
	if n.Leaving == "" && slices.ContainsFunc(deleted, func(m machinev1beta1.Machine) bool { return isMachineOfNode(m, node) }) {
		n.Leaving = "its Machine is being deleted"
	}
	e.Drains.noteResult(n)
	n.Unsettled, err = e.unsettledPods(ctx, *n)
	return err
}

// forgetDiffering observes the nodes again that this call did not, and forgets those of which something else was kept. It returns their names.
func (e *Executor) forgetDiffering(ctx context.Context, nodes map[string]windowsnode.Node, r Rendered) []string {
	var names []string
	for _, name := range nodeNames(nodes) {
		kept, ok := e.observed.nodes[name]
		if !ok || e.observed.again[name] {
			continue
		}
		now := e.observeObject(ctx, nodes[name], e.readSigned(nodes[name]), r)
		if now.isPartial || reflect.DeepEqual(now.node, kept.node) && reflect.DeepEqual(now.urgent, kept.urgent) {
			continue
		}
		names = append(names, name)
		delete(e.observed.nodes, name)
	}
	return names
}
