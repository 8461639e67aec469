package steps

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

// Reasons of events: about the fleet on the operator's Deployment, about one node on the Node.
const (
	EventRolloutBegun   = "RolloutBegun"
	EventRolloutDone    = "RolloutDone"
	EventRolloutStopped = "RolloutStopped"
	EventRolloutPaused  = "RolloutPaused"
	EventRolloutResumed = "RolloutResumed"
	EventTurnBegun      = "TurnBegun"
	EventTurnEnded      = "TurnEnded"
	EventTurnPostponed  = "TurnPostponed"
	// EventHealthCheckShort warns of a MachineHealthCheck that does not wait for a boot.
	EventHealthCheckShort = "HealthCheckTimeoutShort"
)

// Phase is where the whole fleet is.
type Phase string

const (
	// PhaseUpdated means that every node has what is wanted. Nodes that are joining are apart from the rollout.
	PhaseUpdated Phase = "Updated"
	// PhaseUpdating means that nodes have their turns, or wait for them.
	PhaseUpdating Phase = "Updating"
	// PhasePaused means that the settings start no node.
	PhasePaused Phase = "Paused"
	// PhaseStopped means that failed nodes keep others from being started.
	PhaseStopped Phase = "Stopped"
)

// FleetPhase returns where the fleet is.
func (r Result) FleetPhase() Phase {
	switch f := r.Fleet; {
	case f.Stopped != "":
		return PhaseStopped
	case !r.pending:
		return PhaseUpdated
	case r.Policy.Paused:
		return PhasePaused
	}
	return PhaseUpdating
}

// ChangingNodes returns the nodes that the rollout is changing now: they have their turn, or their next step is due. A step does not count while one
// fails: that may take long.
func (r Result) ChangingNodes() []string {
	var names []string
	for _, n := range r.Nodes {
		if n.Phase == plan.PhaseUpdating && (n.Reason != plan.ReasonStep || r.Failed == nil) {
			names = append(names, n.Node)
		}
	}
	return names
}

// FleetMessage is the line of the fleet, with what a failed bundle changes.
func (r Result) FleetMessage() string {
	if r.Blame == "" {
		return r.Fleet.Message
	}
	return r.Fleet.Message + "; " + r.Blame
}

// teller remembers what was said.
type teller struct {
	phase Phase
	// change stands for what is rolled out.
	change string
}

// sendFleetEvents sends the events of the fleet: at each turn of the rollout one.
func (e *Executor) sendFleetEvents(r Result, rendered Rendered) {
	if len(rendered.Wanted) == 0 {
		return // the inputs are refused, or there are no nodes
	}
	before, now := e.teller, teller{r.FleetPhase(), changeName(rendered)}
	e.teller = now
	kind := corev1.EventTypeNormal
	var reason string
	switch {
	case now.phase == before.phase, before.phase == "" && now.phase != PhaseStopped:
		return
	case now.phase == PhaseStopped:
		kind, reason = corev1.EventTypeWarning, EventRolloutStopped
	case now.phase == PhaseUpdated:
		reason = EventRolloutDone
	case now.phase == PhasePaused:
		reason = EventRolloutPaused
	case before.phase == PhaseUpdated:
		reason = EventRolloutBegun
	default:
		reason = EventRolloutResumed
	}
	e.Log.Info("rollout", "phase", now.phase, "message", r.FleetMessage())
	// Events with the same reason and action are one for client-go, which keeps the first message.
	e.Events.Eventf(e.Deployment, nil, kind, reason, "Rollout "+now.change, "%s", published.AppendLog(r.FleetMessage(), r.Fleet.Log))
}

// changeName returns a short name of what is rolled out.
func changeName(r Rendered) string {
	var targets []string
	for _, w := range r.Wanted {
		targets = append(targets, string(w.Target))
	}
	slices.Sort(targets)
	return bundle.Of([]byte(strings.Join(slices.Compact(targets), "\n"))).Short()
}

// recordStep says what a step did to a node: those that take it away and give it back as an event, all of them in the log.
func (e *Executor) recordStep(s plan.Step, before windowsnode.Node, wanted bundle.Digest) {
	kind, reason := corev1.EventTypeNormal, ""
	level := 1
	switch s.Action {
	case plan.ActionReserve:
		reason, level = EventTurnBegun, 0
	case plan.ActionRelease, plan.ActionCancelReservation:
		level = 0
		if !before.Rollout.Claim.IsZero() {
			reason = EventTurnEnded
			if s.State.Turn.Ended.IsZero() || !s.State.Postponed.IsZero() {
				kind, reason = corev1.EventTypeWarning, EventTurnPostponed
			}
		}
	case plan.ActionConfirmReservation, plan.ActionDrain, plan.ActionPermit:
		level = 0
	case plan.ActionPublish, plan.ActionConfirm, plan.ActionNote:
	}
	e.Log.V(level).Info("step", "node", s.Node, "action", s.Action, "permit", s.Permit, "bundle", s.Bundle.Short(), "why", s.Why)
	if reason != "" {
		e.Events.Eventf(before.Reference(), nil, kind, reason, "Turn "+wanted.Short(), "%s", published.Shorten(s.Why))
	}
}
