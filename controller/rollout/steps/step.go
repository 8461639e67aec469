package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/layers"
	"wmco/controller/rollout/drains"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

// Reasons of events about the turn of one node, on the Node.
const (
	EventTurnBegun     = "TurnBegun"
	EventTurnEnded     = "TurnEnded"
	EventTurnPostponed = "TurnPostponed"
)

// errPodsCame is temporary: the node is drained again.
var errPodsCame = errors.New("pods have come to the node since it was drained")

// nodeStep is a step with the Node that it was decided from, and what that can be told of.
type nodeStep struct {
	plan.Step
	node windowsnode.Node
	// wanted is nil where nothing is rendered for the node. Withheld is true while it is not told of that.
	wanted   *layers.Wanted
	withheld bool
	// permitFor is how long an impact above restart is permitted.
	permitFor time.Duration
}

// parallelSteps is how many Nodes are told of their bundles at the same time: one after the other, a thousand take as
// long as a thousand round trips to the API server and to its disk.
const parallelSteps = 8

// outcome is what became of a step.
type outcome struct {
	written bool
	err     error
}

// makeSteps makes the steps, each of another node, and returns what became of each. Those that only publish are made at
// the same time, the others in their order.
func (e *Executor) makeSteps(ctx context.Context, steps []nodeStep) []outcome {
	all := make([]outcome, len(steps))
	places := make(chan struct{}, parallelSteps)
	var publishing sync.WaitGroup
	for i, s := range steps {
		do := func() { all[i] = e.tryStep(ctx, s) }
		if s.Action != plan.ActionPublish || needsEmptyNode(s.Step) {
			do()
			continue
		}
		places <- struct{}{}
		publishing.Go(func() {
			defer func() { <-places }()
			do()
		})
	}
	publishing.Wait()
	return all
}

// tryStep makes a step, unless one of this Node has failed and its pause has not passed. A step that is decided again,
// because of what has changed since the snapshot, is no failure.
func (e *Executor) tryStep(ctx context.Context, s nodeStep) (did outcome) {
	var changed error
	did.err = e.tryForNode(ctx, "Node "+s.Node, func(ctx context.Context) error {
		written, err := e.makeStep(ctx, s)
		did.written = written
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || errors.Is(err, errPodsCame) {
			changed, err = err, nil
		}
		return err
	})
	if changed != nil {
		did.err = changed
	}
	return did
}

// makeStep makes one step. It reports whether the Node was written.
func (e *Executor) makeStep(ctx context.Context, s nodeStep) (bool, error) {
	from, node := e.sourceOfStep(s), s.node
	if s.Bundle != "" && from.Signed.Bundle != s.Bundle && s.withheld {
		return false, nil // it is rendered again
	}
	if needsEmptyNode(s.Step) {
		if err := e.checkDrained(ctx, s); err != nil {
			return false, err
		}
	}
	if err := e.recordReadyPods(ctx, s.Step); err != nil {
		return false, err
	}
	after := *node.Node
	after.Annotations = maps.Clone(node.Annotations)
	if err := s.EditNode(&after, from); err != nil {
		return false, err
	}
	changes := !maps.Equal(node.Annotations, after.Annotations) || node.Spec.Unschedulable != after.Spec.Unschedulable
	if changes {
		if err := e.patchNode(ctx, node.Node, &after); err != nil {
			return false, err
		}
		decoded := windowsnode.DecodeAfter(node, after)
		m := e.memory.ofNode(s.Node)
		m.written = &decoded
		if text := after.Annotations[published.DesiredAnnotation]; text != node.Annotations[published.DesiredAnnotation] {
			m.text = bundle.Of([]byte(text))
			_, _ = e.Notary.OpenDesired(node.ID(), text) // what was written is newer than what a cache may still have
		}
		e.recordStep(s.Step, node, from.Wanted.Bundle)
	}
	if s.Action == plan.ActionDrain {
		e.Drains.DrainNode(ctx, s.Node, s.State.Slot.Taken)
	}
	return changes, nil
}

// patchNode writes what a step changes on a Node, and gives after the version that it has then. Only the metadata is
// asked for: the patch is refused if the Node has changed since before. What the API server itself adds comes with the
// watch.
func (e *Executor) patchNode(ctx context.Context, before, after *corev1.Node) error {
	patch, err := patchOf(before, after)
	if err != nil {
		return err
	}
	answer := base.MetadataOf(base.NodeKind())
	answer.Name = before.Name
	if err := e.Client.Patch(ctx, answer, patch); err != nil {
		return err
	}
	after.ResourceVersion = answer.ResourceVersion
	return nil
}

// patchOf returns the patch of what a step changes on a Node: annotations, and whether it is schedulable. It is refused
// if the Node has changed since. The library would encode and compare both whole Nodes.
func patchOf(before, after *corev1.Node) (client.Patch, error) {
	annotations := map[string]any{}
	for key, value := range after.Annotations {
		if old, ok := before.Annotations[key]; !ok || old != value {
			annotations[key] = value
		}
	}
	for key := range before.Annotations {
		if _, ok := after.Annotations[key]; !ok {
			annotations[key] = nil
		}
	}
	patch := map[string]any{"metadata": map[string]any{"resourceVersion": before.ResourceVersion, "annotations": annotations}}
	if before.Spec.Unschedulable != after.Spec.Unschedulable {
		patch["spec"] = map[string]any{"unschedulable": after.Spec.Unschedulable}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("writing Node %s: %w", before.Name, err)
	}
	return client.RawPatch(types.MergePatchType, text), nil
}

// checkDrained asks the API server for pods: one may have been bound to the node without the scheduler.
func (e *Executor) checkDrained(ctx context.Context, s nodeStep) error {
	left, err := e.Drains.Drainer.RemainingPods(ctx, s.Node)
	if err != nil {
		return fmt.Errorf("looking for pods before impact %s is permitted: %w", s.Permit, err)
	}
	if !drains.IsDrained(left, s.node.IsReady()) {
		e.Drains.RepeatDrain(s.Node)
		return errPodsCame
	}
	return nil
}

// isDisruptive reports whether a step takes a node away: it is decided from what the API server has now.
func isDisruptive(s plan.Step) bool {
	return s.Action == plan.ActionReserve || s.Action == plan.ActionConfirmReservation || needsEmptyNode(s)
}

// needsEmptyNode reports whether a step permits what needs a node without pods. Nodes that are joining have none.
func needsEmptyNode(s plan.Step) bool {
	return (s.Permit == bundle.ImpactDrain || s.Permit == bundle.ImpactReboot) && !s.State.Slot.IsZero()
}

// sourceOfStep is what a step publishes on a Node.
func (e *Executor) sourceOfStep(s nodeStep) plan.Source {
	id := s.node.ID()
	signed, err := e.Notary.OpenDesired(id, s.node.Annotations[published.DesiredAnnotation])
	if err != nil || e.memory.ofNode(s.Node).outdated {
		signed = published.Desired{} // not signed by this operator, or outdated: signed again even if the contents are the same
	}
	from := plan.Source{Signed: signed, Sign: func(d published.Desired) (string, error) {
		d.PermitFor = 0
		if d.MaxImpact.Rank() > bundle.ImpactRestart.Rank() {
			d.PermitFor = int64(s.permitFor.Seconds())
		}
		return e.Notary.SignDesired(id, d)
	}}
	if s.wanted != nil {
		from.Wanted = s.wanted.DesiredAnnotation(e.Namespace, s.Permit)
	}
	return from
}

// recordReadyPods notes which pods of a canary are Ready before its change.
func (e *Executor) recordReadyPods(ctx context.Context, s plan.Step) error {
	if !s.State.Turn.Canary || s.State.Turn.Bundle != s.Bundle || s.Permit == "" || s.Permit == bundle.ImpactNone ||
		s.Action == plan.ActionRelease {
		return nil
	}
	list, err := listPods(ctx, e.Pods, s.Node)
	if err != nil {
		return err
	}
	before := readyBefore{s.Bundle, map[types.UID]bool{}}
	for _, p := range list {
		if c := readyCondition(p); c.Status == corev1.ConditionTrue {
			before.pods[p.UID] = true
		}
	}
	e.memory.ofNode(s.Node).ready = before
	return nil
}

// recordStep reports what a step did to a node: those that take it away and give it back as an event, all of them in the
// log.
func (e *Executor) recordStep(s plan.Step, before windowsnode.Node, wanted bundle.Digest) {
	kind, reason := corev1.EventTypeNormal, ""
	level := 1
	switch s.Action {
	case plan.ActionReserve:
		reason, level = EventTurnBegun, 0
	case plan.ActionRelease, plan.ActionCancelReservation:
		level = 0
		if !before.Rollout.Slot.IsZero() {
			reason = EventTurnEnded
			if s.State.Turn.Ended.IsZero() || !s.State.Postponed.IsZero() {
				kind, reason = corev1.EventTypeWarning, EventTurnPostponed
			}
		}
	case plan.ActionConfirmReservation, plan.ActionDrain, plan.ActionPermit:
		level = 0
	case plan.ActionPublish, plan.ActionConfirm, plan.ActionNote:
	}
	e.Log.V(level).Info("step", "node", s.Node, "action", s.Action, "permit", s.Permit, "bundle", s.Bundle.Short(),
		"why", s.Why)
	if reason != "" {
		e.Events.Eventf(before.Reference(), nil, kind, reason, "Turn "+wanted.Short(), "%s", published.Shorten(s.Why))
	}
}
