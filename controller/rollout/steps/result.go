package steps

import (
	"slices"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
)

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
	// Failed is why single steps were not made. Each is retried.
	Failed error
	// pending is true while a node does not have its wanted bundle.
	pending bool
}

// requeueWithin makes the next call happen after this pause at the latest.
func (r *Result) requeueWithin(d time.Duration) {
	if r.Again == 0 || d < r.Again {
		r.Again = d
	}
}

// Reasons of events about the fleet, on the operator's Deployment.
const (
	EventRolloutBegun   = "RolloutBegun"
	EventRolloutDone    = "RolloutDone"
	EventRolloutStopped = "RolloutStopped"
	EventRolloutPaused  = "RolloutPaused"
	EventRolloutResumed = "RolloutResumed"
)

// Phase is where the whole fleet is.
type Phase string

const (
	// PhaseUpdated means that every node has its wanted bundle. Nodes that are joining are apart from the rollout.
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

// ChangingNodes returns the nodes that the rollout is changing now: they have their turn, or their next step is due. A
// step does not count while one fails: that may take long.
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

// fleetStatus is the last report about the fleet.
type fleetStatus struct {
	phase Phase
	// change identifies the change that is rolled out.
	change string
}

// reasonSince returns the reason of the event about what has become of the fleet since before; empty for none.
func (now fleetStatus) reasonSince(before fleetStatus) string {
	switch {
	case now.phase == before.phase, before.phase == "" && now.phase != PhaseStopped:
		return ""
	case now.phase == PhaseStopped:
		return EventRolloutStopped
	case now.phase == PhaseUpdated:
		return EventRolloutDone
	case now.phase == PhasePaused:
		return EventRolloutPaused
	case before.phase == PhaseUpdated:
		return EventRolloutBegun
	}
	return EventRolloutResumed
}

// changeName returns a short name of the change that is rolled out.
func changeName(wanted map[string]layers.Wanted) string {
	var targets []string
	for _, w := range wanted {
		targets = append(targets, string(w.Target))
	}
	slices.Sort(targets)
	return bundle.Of([]byte(strings.Join(slices.Compact(targets), "\n"))).Short()
}
