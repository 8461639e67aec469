package steps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/controller/layers"
	"wmco/controller/rollout/drains"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/nodelist"
)

// Wanted is what is rendered for one node.
type Wanted struct {
	layers.Wanted
	// Content is the bundle itself, which is only read. It may be without its provenance (Rendered.Provenance).
	Content *bundle.Bundle
	// Target is that of plan.TargetDigest.
	Target bundle.Digest
	// From is what of its Node the bundle was rendered from, as Rendered.From has it; empty is not compared.
	From bundle.Digest
	// PayloadKept is true while the bundle has the executables that are published for the node, because newer ones are not on its host yet.
	PayloadKept bool
}

// Rendered is what is rendered for all nodes at one moment.
type Rendered struct {
	// Wanted has no node whose bundle is refused.
	Wanted   map[string]Wanted
	Platform bundle.Platform
	Policy   plan.Policy
	// Closed returns until when changes wait for a window, by the time of day; nil is for windows that are always open.
	Closed func(now time.Time) plan.Closed
	// Provenance returns that of the bundle of a node, which is made again: it is asked for where a node has failed. Nil knows none.
	Provenance func(node string) bundle.Provenance
	// Urgent finds what must not wait for nodes with a cluster layer; nil is nothing.
	Urgent func(has bundle.Layer) (Urgent, error)
	// Ready are the urgent bundles whose layers are published.
	Ready map[bundle.Digest]bool
	// Held reports whether not all layers of a bundle can be read by nodes: none is told of it. Nil holds none.
	Held func(layers.Wanted) bool
	// From returns what of a Node its bundle is rendered from. A bundle that was rendered from something else is not published any more: the next
	// rendering knows what it was not made from, such as the networks of a host that joins. Nil compares nothing.
	From func(windowsnode.Node) bundle.Digest
}

// Executor makes the steps of one cluster's rollout. Its methods are not for use by several goroutines.
type Executor struct {
	// Nodes reads Windows Nodes and Machines from a cache, unstructured. Live asks the API server.
	Nodes, Live client.Reader
	// Decoded are the Nodes of the cache; nil decodes them at each call.
	Decoded *nodelist.Cache
	Client  client.Client
	// Layers are those that nodes have and get.
	Layers *layers.Cache
	// Pods lists the pods of nodes.
	Pods      kubernetes.Interface
	Drains    *drains.Drains
	Notary    Notary
	Namespace string
	// Deployment is the object of events about the whole fleet.
	Deployment *corev1.ObjectReference
	Events     events.EventRecorder
	Log        logr.Logger
	// Now is the time of day, which is written on Nodes. Elapsed is a monotonic clock, which turns are decided by.
	Now     func() time.Time
	Elapsed func() time.Duration
	// Try does one thing, unless it has failed a moment ago (base.Pauses). What fails for one Node keeps no other one waiting. Nil tries at each
	// call.
	Try func(ctx context.Context, what string, do func(context.Context) error) error
	// Heartbeats says for how long the agent of a node has been silent.
	Heartbeats windowsnode.Silence

	memory   memory
	compared compared
	teller   teller
}

// Result is where the fleet is, and what was done.
type Result struct {
	plan.Plan
	Policy plan.Policy
	// Published is the number of nodes that were told of a bundle.
	Published int
	// Blame names what the bundle of the failed nodes changes, and the objects that caused it; empty if no node failed.
	Blame string
	// Unready are urgent bundles whose layers have to be published before nodes can be told of them.
	Unready []layers.Wanted
	// Urgent are the urgent bundles that nodes were told of and do not have yet: nothing else wants their layers.
	Urgent []layers.Wanted
	// Again is when to call again although nothing was seen to change; zero is never.
	Again time.Duration
	// Failed is why single steps were not made. Each is tried again by itself.
	Failed error
	// pending is true while a node does not have what is wanted for it.
	pending bool
}

const (
	// againConflict is the pause after a step that was refused because the Node had changed: the cache has to learn of that.
	againConflict = 300 * time.Millisecond
	// againUnsettled is the pause while a canary's pods are not back: pods are not watched.
	againUnsettled = 10 * time.Second
)

// RunSteps makes the next steps. The error is why none was made; calling it again continues.
func (e *Executor) RunSteps(ctx context.Context, r Rendered) (Result, error) {
	if err := e.beginSigning(ctx); err != nil {
		return Result{}, err
	}
	nodes, err := e.CachedNodes(ctx)
	if err != nil {
		return Result{}, err
	}
	view, err := e.observeFleet(ctx, nodes, r)
	if err != nil {
		return Result{}, err
	}
	next := plan.NextSteps(view.Fleet)
	if slices.ContainsFunc(next.Steps, isDisruptive) {
		if nodes, err = e.liveNodes(ctx); err == nil {
			view, err = e.observeFleet(ctx, nodes, r)
		}
		if err != nil {
			return Result{}, fmt.Errorf("reading the nodes before one is taken away: %w", err)
		}
		next = plan.NextSteps(view.Fleet)
	}
	e.Drains.KeepClaimed(claimedSince(view.Fleet))
	result := Result{Plan: next, Policy: r.Policy, Blame: e.failureCause(view, r)}
	if next.Wake > 0 {
		result.Again = max(next.Wake, time.Second)
	}
	for i, n := range next.Nodes { // both are sorted by name
		result.pending = result.pending || n.Phase != plan.PhaseUpdated && !view.Nodes[i].Joining && view.Nodes[i].Wanted != ""
	}
	if view.unsettled {
		result.requeueWithin(againUnsettled)
	}
	failed := view.failed
	steps := slices.DeleteFunc(slices.Clone(next.Steps), func(s plan.Step) bool {
		u := view.urgent[s.Node]
		unready := s.Urgent && u.Bundle != r.Wanted[s.Node].Bundle && !r.Ready[u.Bundle]
		if unready {
			result.Unready = append(result.Unready, u)
		}
		return unready
	})
	for i, did := range e.makeSteps(ctx, steps, nodes, func(s plan.Step) target { return view.stepTarget(s, r) }) {
		switch s, err := steps[i], did.err; {
		case apierrors.IsConflict(err) || errors.Is(err, errPodsCame):
			result.requeueWithin(againConflict)
		case client.IgnoreNotFound(err) != nil:
			failed = append(failed, fmt.Errorf("writing Node %s: %w", s.Node, err))
		case did.written && s.Action == plan.ActionPublish:
			result.Published++
		case did.written && s.Action == plan.ActionReserve && needsBoot(next, s.Node):
			failed = append(failed, e.tryForNode(ctx, "warning about health checks of "+s.Node, func(ctx context.Context) error { return e.warnShortHealthCheck(ctx, view, nodes[s.Node]) }))
		}
	}
	result.Urgent = e.toldUrgent(view)
	e.sendFleetEvents(result, r)
	result.Failed = errors.Join(failed...)
	return result, nil
}

// tryForNode does one thing, unless its pause has not passed.
func (e *Executor) tryForNode(ctx context.Context, what string, do func(context.Context) error) error {
	if e.Try == nil {
		return do(ctx)
	}
	return e.Try(ctx, what, do)
}

// requeueWithin makes the next call happen after this pause at the latest.
func (r *Result) requeueWithin(d time.Duration) {
	if r.Again == 0 || d < r.Again {
		r.Again = d
	}
}

// isDisruptive reports whether a step takes a node away: it is decided from what the API server has now.
func isDisruptive(s plan.Step) bool {
	return s.Action == plan.ActionReserve || s.Action == plan.ActionConfirmReservation || needsEmptyNode(s)
}

// needsBoot reports whether the turn of a node has a boot.
func needsBoot(p plan.Plan, node string) bool {
	return slices.ContainsFunc(p.Nodes, func(s plan.Status) bool { return s.Node == node && s.Impact == bundle.ImpactReboot })
}

// needsEmptyNode reports whether a step permits what needs a node without pods. Nodes that are joining have none.
func needsEmptyNode(s plan.Step) bool {
	return (s.Permit == bundle.ImpactDrain || s.Permit == bundle.ImpactReboot) && !s.State.Claim.IsZero()
}

// claimedSince returns when the places of nodes were taken whose pods may be evicted.
func claimedSince(f plan.Fleet) map[string]time.Time {
	held := map[string]time.Time{}
	for _, n := range f.Nodes {
		if n.State.Claim.Held {
			held[n.Name] = n.State.Claim.Taken
		}
	}
	return held
}

// nodeNames returns the names of Nodes, sorted.
func nodeNames(nodes map[string]windowsnode.Node) []string { return slices.Sorted(maps.Keys(nodes)) }
