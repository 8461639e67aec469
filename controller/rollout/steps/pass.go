package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

const (
	// againConflict is the pause after a step that was refused because the Node had changed: the cache has to learn of
	// that.
	againConflict = 300 * time.Millisecond
	// againUnsettled is the pause while a canary's pods are not back: pods are not watched.
	againUnsettled = 10 * time.Second
)

// RunSteps makes the next steps. The error is why none was made; calling it again continues.
func (e *Executor) RunSteps(ctx context.Context, r Rendered) (Result, error) {
	if err := e.Notary.BeginTerm(ctx); err != nil {
		return Result{}, fmt.Errorf("preparing the signing keys: %w", err)
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
	e.Drains.KeepSlots(slotsSince(view.Fleet))
	result := Result{Plan: next, Policy: r.Policy, Blame: view.failureCause(e.Layers, r)}
	if next.Wake > 0 {
		result.Again = max(next.Wake, time.Second)
	}
	for i, n := range next.Nodes { // both are sorted by name
		result.pending = result.pending || n.Phase != plan.PhaseUpdated && !view.Nodes[i].Joining &&
			view.Nodes[i].Wanted != ""
	}
	if view.unsettled {
		result.requeueWithin(againUnsettled)
	}
	result.Failed = errors.Join(append(view.failed, e.makeNextSteps(ctx, &result, view, r)...)...)
	result.Urgent = e.publishedUrgent(view)
	e.sendFleetEvents(result, r)
	return result, nil
}

// makeNextSteps makes the steps of the plan, but for those whose layers are not published yet, and notes in the result
// what became of them. It returns why steps could not be made.
func (e *Executor) makeNextSteps(ctx context.Context, result *Result, view snapshot, r Rendered) (failed []error) {
	var steps []nodeStep
	for _, s := range result.Steps {
		if u := view.urgent[s.Node]; s.Urgent && u.Bundle != r.Wanted[s.Node].Bundle && !r.Ready[u.Bundle] {
			result.Unready = append(result.Unready, u)
			continue
		}
		wanted, withheld := view.wantedForStep(s, r)
		steps = append(steps, nodeStep{Step: s, node: view.nodes[s.Node], wanted: wanted, withheld: withheld,
			permitFor: r.Policy.Timeout})
	}
	for i, did := range e.makeSteps(ctx, steps) {
		switch s, err := steps[i], did.err; {
		case apierrors.IsConflict(err) || errors.Is(err, errPodsCame):
			result.requeueWithin(againConflict)
		case client.IgnoreNotFound(err) != nil:
			failed = append(failed, fmt.Errorf("writing Node %s: %w", s.Node, err))
		case did.written && s.Action == plan.ActionPublish:
			result.Published++
		case did.written && s.Action == plan.ActionReserve && needsBoot(result.Plan, s.Node):
			failed = append(failed, e.tryForNode(ctx, "warning about health checks of "+s.Node,
				func(ctx context.Context) error { return e.warnShortHealthCheck(ctx, view, s.node) }))
		}
	}
	return failed
}

// publishedUrgent returns the urgent layers on Nodes, also since the snapshot was made.
func (e *Executor) publishedUrgent(v snapshot) []layers.Wanted {
	var list []layers.Wanted
	for _, n := range v.Nodes {
		u, on := v.urgent[n.Name], n.Published
		if node := e.memory.ofNode(n.Name).written; node != nil {
			on = node.Desired.Bundle // what this executor has written itself
		}
		if u.Bundle != "" && u.Bundle == on && u.Bundle != n.Wanted {
			list = append(list, u)
		}
	}
	return list
}

// needsBoot reports whether the turn of a node has a boot.
func needsBoot(p plan.Plan, node string) bool {
	return slices.ContainsFunc(p.Nodes, func(s plan.Status) bool {
		return s.Node == node && s.Impact == bundle.ImpactReboot
	})
}

// slotsSince returns when the slots of nodes were taken whose pods may be evicted.
func slotsSince(f plan.Fleet) map[string]time.Time {
	held := map[string]time.Time{}
	for _, n := range f.Nodes {
		if n.State.Slot.Held {
			held[n.Name] = n.State.Slot.Taken
		}
	}
	return held
}

// warnShortHealthCheck names before a boot the MachineHealthCheck that may take the machine for dead during the update, and
// delete it.
func (e *Executor) warnShortHealthCheck(ctx context.Context, v snapshot, node windowsnode.Node) error {
	i := slices.IndexFunc(v.Nodes, func(n plan.Node) bool { return n.Name == node.Name })
	took, ok := plan.LearnDurations(v.Fleet).MedianOf(v.Nodes[i].Group, bundle.ImpactReboot)
	if !ok {
		return nil
	}
	short, err := machines{e.Nodes, e.Live}.shortHealthChecks(ctx, node, took)
	for _, text := range short {
		e.Events.Eventf(node.Reference(), nil, corev1.EventTypeWarning, EventHealthCheckShort,
			"Turn "+v.Nodes[i].Wanted.Short(), "%s", published.Shorten(text))
	}
	return err
}

// sendFleetEvents sends the events of the fleet: at each turn of the rollout one.
func (e *Executor) sendFleetEvents(r Result, rendered Rendered) {
	if len(rendered.Wanted) == 0 {
		return // the inputs are refused, or there are no nodes
	}
	before, now := e.lastFleet, fleetStatus{r.FleetPhase(), changeName(rendered.Wanted)}
	e.lastFleet = now
	reason, kind := now.reasonSince(before), corev1.EventTypeNormal
	switch reason {
	case "":
		return
	case EventRolloutStopped:
		kind = corev1.EventTypeWarning
	}
	e.Log.Info("rollout", "phase", now.phase, "message", r.FleetMessage())
	// Events with the same reason and action are one for client-go, which keeps the first message.
	e.Events.Eventf(e.Deployment, nil, kind, reason, "Rollout "+now.change, "%s",
		published.AppendLog(r.FleetMessage(), r.Fleet.Log))
}
