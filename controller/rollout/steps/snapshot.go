package steps

import (
	"context"
	"fmt"
	"maps"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

// snapshot is the fleet at one moment, with what follows from it.
type snapshot struct {
	plan.Fleet
	// nodes are the Nodes that it was made from, by name.
	nodes map[string]windowsnode.Node
	// unsettled is true while the pods of a canary are not back.
	unsettled bool
	// urgent are the bundles of plan.Urgent, by node.
	urgent map[string]layers.Wanted
	// failed is why something urgent could not be prepared; the rollout does not wait for that.
	failed []error
}

// wantedForStep returns what a step publishes on its node, if it publishes anything; nil where nothing is rendered for
// it. Withheld reports whether the node is not told of it now.
func (v snapshot) wantedForStep(s plan.Step, r Rendered) (wanted *layers.Wanted, withheld bool) {
	w, ok := r.Wanted[s.Node]
	if u, isUrgent := v.urgent[s.Node]; isUrgent && s.Urgent {
		u.From, ok = w.From, true
		w = u
	}
	if !ok {
		return nil, false
	}
	return &w, r.isWithheld(w, v.nodes[s.Node])
}

// observeFleet makes the snapshot that is decided from. What no node needs any longer is forgotten.
func (e *Executor) observeFleet(ctx context.Context, nodes map[string]windowsnode.Node, r Rendered) (snapshot, error) {
	v := snapshot{nodes: nodes, Fleet: plan.Fleet{Nodes: make([]plan.Node, 0, len(nodes)), Policy: r.Policy,
		Now: e.Now()}, urgent: map[string]layers.Wanted{}}
	if r.Closed != nil {
		v.Policy.Closed = r.Closed(v.Now)
	}
	deleted, err := machines{e.Nodes, e.Live}.deletedMachines(ctx)
	if err != nil {
		return snapshot{}, err
	}
	c := newComparison(e.Layers, e.compared, r.Wanted, r.Urgent)
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n, urgent, failed := e.observeNode(ctx, nodes[name], r, c)
		if failed != nil {
			v.failed = append(v.failed, fmt.Errorf("preparing the urgent bundle of node %s: %w", name, failed))
		}
		if n.Urgent.Bundle != "" {
			v.urgent[name] = urgent
		}
		e.observeSurroundings(ctx, &n, nodes[name], deleted)
		v.unsettled = v.unsettled || n.Unsettled != ""
		v.Nodes = append(v.Nodes, n)
	}
	maps.DeleteFunc(e.memory.nodes, func(name string, _ *nodeMemory) bool { _, ok := nodes[name]; return !ok })
	e.compared = c.found
	e.Layers.DropUnused()
	return v, nil
}

// observeNode finds out the state of a node beside its rendered bundle, and how urgent changes are
// published. Its error is why the latter could not be prepared, if it is retried.
func (e *Executor) observeNode(ctx context.Context, node windowsnode.Node, r Rendered, c *comparison) (plan.Node,
	layers.Wanted, error) {
	on, err := e.Notary.OpenDesired(node.ID(), node.Annotations[published.DesiredAnnotation])
	if err != nil {
		on = published.Desired{}
	}
	m := e.memory.ofNode(node.Name)
	if !m.noteSigned(node, on, node.Report) { // it is written again
		on, err = published.Desired{}, errOutdated
	}
	n := plan.ObserveNode(node, on, err)
	if m.removed != "" && m.removed == node.UID {
		n.EndNode()
	}
	n.Group.Platform = r.Platform
	w, ok := r.Wanted[node.Name]
	if !ok {
		return n, layers.Wanted{}, nil
	}
	n.Wanted, n.Target = w.Bundle, w.Target
	n.PayloadPending, n.PayloadKept = node.IsPayloadPending(w.Payload), w.PayloadKept
	var urgent layers.Wanted
	err = e.tryForNode(ctx, "urgent bundle of Node "+node.Name, func(ctx context.Context) (err error) {
		urgent, err = c.compareNode(ctx, &n, node, m.signedDesired(n.Report.Applied), w)
		return err
	})
	if n.State.Slot.IsZero() && isDamaged(on, w, e.Namespace) { // in a turn it waits for the end
		n.Published, n.Permitted = "", ""
	}
	return n, urgent, err
}

// observeSurroundings adds what the object of the node does not say: for how long something has lasted, its drain, its
// pods and its Machine.
func (e *Executor) observeSurroundings(ctx context.Context, n *plan.Node, node windowsnode.Node,
	deleted []machinev1beta1.Machine) {
	n.Seen, n.Silent = e.memory.ofNode(n.Name).observeNode(*n, e.Elapsed()), e.Heartbeats.IsSilent(node)
	if n.Leaving == "" && slices.ContainsFunc(deleted, func(m machinev1beta1.Machine) bool {
		return isMachineOfNode(m, node)
	}) {
		n.Leaving = "its Machine is being deleted"
	}
	e.Drains.NoteResult(n)
	n.Unsettled = e.unsettledPods(ctx, *n)
}

// isDamaged reports whether a Node was told of the wanted bundle, and of something else about it than is rendered. What
// is not signed is damaged too, and counts as absent (plan.ObserveNode).
func isDamaged(on published.Desired, w layers.Wanted, namespace string) bool {
	if on.Bundle == "" || on.Bundle != w.Bundle {
		return false
	}
	want := w.DesiredAnnotation(namespace, on.MaxImpact)
	// whether a paused node was told to apply it too
	want.Urgent, want.NodeName, want.NodeUID, want.Boot = on.Urgent, on.NodeName, on.NodeUID, on.Boot
	return !on.SaysTheSame(want)
}

// unsettledPods names the pods of a canary that do not work since its update; empty for all other nodes. That they cannot be
// listed is its own fault, and keeps nothing else waiting.
func (e *Executor) unsettledPods(ctx context.Context, n plan.Node) string {
	if !mustSettle(n) {
		return ""
	}
	var list []corev1.Pod
	err := e.tryForNode(ctx, "pods of the canary "+n.Name, func(ctx context.Context) (err error) {
		list, err = listPods(ctx, e.Pods, n.Name)
		return err
	})
	if err != nil {
		return err.Error()
	}
	before := e.memory.ofNode(n.Name).ready
	if before.bundle != n.Published {
		before.pods = nil
	}
	return describeBroken(list, before.pods, n.State.Turn.Begun)
}

// mustSettle reports whether the node is a canary with something new whose pods have to come back.
func mustSettle(n plan.Node) bool {
	t := n.State.Turn
	return t.Canary && t.Confirmed.IsZero() && t.Bundle == n.Published && t.Impact != bundle.ImpactNone &&
		n.Report.State == published.StateApplied
}

// failureCause names what the bundle of failed nodes changes, and which objects caused that. A full disk, a damaged
// layer and a locked file are no fault of an object.
func (v snapshot) failureCause(cache *layers.Cache, r Rendered) string {
	for _, n := range v.Nodes {
		w, ok := r.Wanted[n.Name]
		if !ok || n.Published != n.Wanted || n.Report.Desired != n.Wanted || !n.Report.BlamesInput() ||
			len(n.Report.Layers) != 2 {
			continue
		}
		from, known := cache.LookupLayer(n.Report.Layers[0])
		own, both := cache.LookupLayer(n.Report.Layers[1])
		if !known || !both {
			continue
		}
		to := *w.Content
		if to.Provenance == nil && r.Provenance != nil {
			to.Provenance = r.Provenance(n.Name)
		}
		return describeChanges(bundle.Diff(bundle.Bundle{Cluster: from, Node: own}, to))
	}
	return ""
}
