package steps

import (
	"context"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

// observeNode finds out what the object of a node says beside what is rendered for it, and how what is urgent is published. Its error is why the latter
// could not be prepared, if it is tried again by itself.
func (e *Executor) observeNode(ctx context.Context, node windowsnode.Node, r Rendered, c *comparison) (plan.Node, layers.Wanted, error) {
	on, err := e.Notary.OpenDesired(node.ID(), node.Annotations[published.DesiredAnnotation])
	n := plan.ObserveNode(node, func(windowsnode.Node) (published.Desired, error) { return on, err })
	if err != nil {
		on = published.Desired{}
	}
	m := e.memory.ofNode(node.Name)
	if !m.noteSigned(node, on, n.Report) { // an earlier signed annotation was put back: it is written again
		n.Published, n.Permitted, n.PublishedUrgent, n.Boot.Permitted = "", "", false, ""
	}
	n.Group.Platform = r.Platform
	w, ok := r.Wanted[node.Name]
	if !ok {
		return n, layers.Wanted{}, nil
	}
	n.Wanted, n.Target = w.Bundle, w.Target
	n.PayloadPending, n.PayloadKept = node.IsPayloadPending(w.Payload), w.PayloadKept
	var urgent layers.Wanted
	err = e.tryForNode(ctx, "what is urgent for Node "+node.Name, func(ctx context.Context) (err error) {
		urgent, err = c.compareNode(ctx, &n, node, m, destination{w, r.Urgent})
		return err
	})
	if n.State.Claim.IsZero() && isDamaged(on, w, e.Namespace) { // in a turn it waits for the end
		n.Published, n.Permitted = "", ""
	}
	return n, urgent, err
}

// observeSurroundings adds what the object of the node does not say: for how long something has lasted, its drain, its pods and its Machine.
func (e *Executor) observeSurroundings(ctx context.Context, n *plan.Node, node windowsnode.Node, deleted []machinev1beta1.Machine) {
	n.Seen, n.Silent = e.memory.ofNode(n.Name).observeNode(*n, e.Elapsed()), e.Heartbeats.IsSilent(node)
	if n.Leaving == "" && slices.ContainsFunc(deleted, func(m machinev1beta1.Machine) bool { return isMachineOfNode(m, node) }) {
		n.Leaving = "its Machine is being deleted"
	}
	e.Drains.NoteResult(n)
	n.Unsettled = e.unsettledPods(ctx, *n)
}
