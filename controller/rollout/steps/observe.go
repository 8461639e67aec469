package steps

import (
	"context"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/nodelist"
)

// CachedNodes returns the Windows Nodes by name as the cache has them, with what this executor has written since. They are only read.
func (e *Executor) CachedNodes(ctx context.Context) (map[string]windowsnode.Node, error) {
	list, err := e.Decoded.ListCached(ctx, e.Nodes)
	if err != nil {
		return nil, err
	}
	nodes := make(map[string]windowsnode.Node, len(list))
	for _, node := range list {
		nodes[node.Name] = e.newestNode(node)
	}
	return nodes, nil
}

// newestNode returns what this executor has written on the Node, while the cache is behind. Two steps are not made where one is allowed.
func (e *Executor) newestNode(node windowsnode.Node) windowsnode.Node {
	m := e.memory.ofNode(node.Name)
	if m.written == nil {
		return node
	}
	if order, err := resourceversion.CompareResourceVersion(node.ResourceVersion, m.written.ResourceVersion); err == nil && order < 0 && node.UID == m.written.UID {
		return *m.written
	}
	m.written = nil
	return node
}

// liveNodes returns the Windows Nodes by name as the API server has them.
func (e *Executor) liveNodes(ctx context.Context) (map[string]windowsnode.Node, error) {
	list, err := nodelist.ListLive(ctx, e.Live)
	if err != nil {
		return nil, err
	}
	nodes := map[string]windowsnode.Node{}
	for _, n := range list {
		nodes[n.Name] = n
	}
	return nodes, nil
}

// view is a snapshot with what follows from it.
type view struct {
	plan.Fleet
	// unsettled is true while the pods of a canary are not back.
	unsettled bool
	// urgent are the bundles of plan.Urgent, by node.
	urgent map[string]layers.Wanted
	// failed is why something urgent could not be prepared; the rollout does not wait for that.
	failed []error
}

// stepTarget returns what a step publishes on its node, if it publishes anything.
func (v view) stepTarget(s plan.Step, r Rendered) target {
	t := target{permitFor: r.Policy.Timeout}
	if w, ok := r.Wanted[s.Node]; ok {
		t.Wanted, t.known = w.Wanted, true
		t.outdated = func(now windowsnode.Node) bool { return w.From != "" && r.From != nil && r.From(now) != w.From }
	}
	if u, ok := v.urgent[s.Node]; ok && s.Urgent {
		t.Wanted, t.known = u, true
	}
	t.held = t.known && r.Held != nil && r.Held(t.Wanted)
	return t
}

// observeFleet makes the snapshot that is decided from. What no node needs any longer is forgotten.
func (e *Executor) observeFleet(ctx context.Context, nodes map[string]windowsnode.Node, r Rendered) (view, error) {
	v := view{Fleet: plan.Fleet{Nodes: make([]plan.Node, 0, len(nodes)), Policy: r.Policy, Now: e.Now()}, urgent: map[string]layers.Wanted{}}
	if r.Closed != nil {
		v.Policy.Closed = r.Closed(v.Now)
	}
	deleted, err := e.deletedMachines(ctx)
	if err != nil {
		return view{}, err
	}
	c := newComparison(e.Layers, e.compared, r)
	defer func() { e.compared = c.end() }()
	for _, name := range nodeNames(nodes) {
		n, urgent, failed := e.observeNode(ctx, nodes[name], r, c)
		if failed != nil {
			v.failed = append(v.failed, fmt.Errorf("preparing what is urgent for node %s: %w", name, failed))
		}
		if n.Urgent.Bundle != "" {
			v.urgent[name] = urgent
		}
		e.observeSurroundings(ctx, &n, nodes[name], deleted)
		v.unsettled = v.unsettled || n.Unsettled != ""
		v.Nodes = append(v.Nodes, n)
	}
	e.memory.retainNodes(nodes)
	return v, nil
}

// isDamaged reports whether a Node was told of the wanted bundle, and of something else about it than is rendered. What is not signed is damaged
// too, and counts as absent (plan.ObserveNode).
func isDamaged(on published.Desired, w Wanted, namespace string) bool {
	if on.Bundle == "" || on.Bundle != w.Bundle {
		return false
	}
	want := w.DesiredAnnotation(namespace, on.MaxImpact)
	want.Urgent, want.NodeName, want.NodeUID, want.Boot = on.Urgent, on.NodeName, on.NodeUID, on.Boot // whether it was said that a paused node gets it too
	return !on.SaysTheSame(want)
}

// deletedMachines returns the Machines that are about to go.
func (e *Executor) deletedMachines(ctx context.Context) ([]machinev1beta1.Machine, error) {
	list, err := e.listMachines(ctx)
	if err != nil {
		return nil, err
	}
	var deleted []machinev1beta1.Machine
	for _, u := range list {
		if u.GetDeletionTimestamp() == nil {
			continue
		}
		m, err := decodeMachine(u)
		if err != nil {
			return nil, err
		}
		deleted = append(deleted, m)
	}
	return deleted, nil
}

// isMachineOfNode reports whether a Machine is that of a Node: machine-api names the Node, or they have an address in common.
func isMachineOfNode(m machinev1beta1.Machine, node windowsnode.Node) bool {
	if m.Status.NodeRef != nil {
		return m.Status.NodeRef.Name == node.Name
	}
	return slices.ContainsFunc(m.Status.Addresses, func(a corev1.NodeAddress) bool {
		return a.Type == corev1.NodeInternalIP && slices.Contains(node.Status.Addresses, a)
	})
}

// mustSettle reports whether the node is a canary with something new whose pods have to come back.
func mustSettle(n plan.Node) bool {
	t := n.State.Turn
	return t.Canary && t.Confirmed.IsZero() && t.Bundle == n.Published && t.Impact != bundle.ImpactNone && n.Report.State == published.StateApplied
}
