package plan

import (
	"fmt"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/bundle/nodestate"
)

// Phase is where a node is in the rollout, in the words of all states of nodes.
type Phase = nodestate.State

const (
	// PhaseUpdated means that the node has its wanted bundle.
	PhaseUpdated = nodestate.Updated
	// PhaseUpdating means that it is its turn.
	PhaseUpdating = nodestate.Updating
	// PhaseWaiting means that its turn has not come.
	PhaseWaiting = nodestate.Waiting
	// PhaseDegraded means that the bundle did not work on it.
	PhaseDegraded = nodestate.Degraded
)

// Reason is what a node waits for, or what it does.
type Reason string

const (
	// ReasonUpdated means that the node has the wanted bundle.
	ReasonUpdated Reason = "Updated"
	// ReasonStep means that the plan has a step for it.
	ReasonStep Reason = "Step"
	// ReasonApplying means that its agent works.
	ReasonApplying Reason = "Applying"
	// ReasonSettling means that it is a canary and is observed.
	ReasonSettling Reason = "Settling"
	// ReasonCanary means that it waits for canaries.
	ReasonCanary Reason = "WaitingForCanary"
	// ReasonUnavailable means that too many nodes are unavailable.
	ReasonUnavailable Reason = "WaitingForAvailability"
	// ReasonParallel means that enough nodes restart services.
	ReasonParallel Reason = "WaitingForParallel"
	// ReasonPaused means that the node or the rollout is paused.
	ReasonPaused Reason = "Paused"
	// ReasonStopped means that failures stopped the rollout.
	ReasonStopped Reason = "Stopped"
	// ReasonFailed means that the node itself failed.
	ReasonFailed Reason = "Failed"
	// ReasonDrain means that its drain did not end in time.
	ReasonDrain Reason = "DrainBlocked"
	// ReasonWindow means that no window for its change is open.
	ReasonWindow Reason = "WaitingForWindow"
	// ReasonPayload means that executables are on their way.
	ReasonPayload Reason = "PayloadPending"
	// ReasonRoom means that the disk of its host is full. It continues when there is room.
	ReasonRoom Reason = "WaitingForRoom"
	// ReasonUnreachable means that the node does not answer.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonLeaving means that the node is about to go.
	ReasonLeaving Reason = "Leaving"
	// ReasonJoining means that the operator still joins it.
	ReasonJoining Reason = "Joining"
	// ReasonUnknown means that no bundle is rendered for it.
	ReasonUnknown Reason = "NoBundle"
	// ReasonForeign means that a newer operator has written its annotations.
	ReasonForeign Reason = "NewerOperator"
)

// Status is where one node is.
type Status struct {
	Node   string `json:"node"`
	Phase  Phase  `json:"phase"`
	Reason Reason `json:"reason"`
	// Message is one line for people.
	Message string `json:"message"`
	// Impact is what the rest of its way needs; empty where nothing is left.
	Impact bundle.Impact `json:"impact,omitempty"`
	// Canary is true for a node that goes before the others.
	Canary bool `json:"canary,omitempty"`
	// DrainBlocked names what keeps the drain of the node from ending: the PodDisruptionBudget and the pod, or pods
	// that are ending.
	DrainBlocked string `json:"drainBlocked,omitempty"`
}

// Summary is where the fleet is.
type Summary struct {
	Updated  int `json:"updated"`
	Updating int `json:"updating"`
	Waiting  int `json:"waiting"`
	Degraded int `json:"degraded"`
	// Unavailable is how many nodes are, Limit how many may be.
	Unavailable int `json:"unavailable"`
	Limit       int `json:"limit"`
	// Stopped is why no node is started; empty if nothing failed.
	Stopped string `json:"stopped,omitempty"`
	// Fix is what to do about the failure that stopped it.
	Fix string `json:"fix,omitempty"`
	// Log is the end of the log of the service because of which a node was rolled back that stopped it.
	Log bundle.LogTail `json:"log,omitzero"`
	// Urgent are the nodes that something urgent cannot reach, by name.
	Urgent []Held `json:"urgent,omitempty"`
	// Message is one line for people.
	Message string `json:"message"`
}

// Held is a node that something urgent cannot reach.
type Held struct {
	Node string `json:"node"`
	// Message names the input that cannot reach it, and why.
	Message string `json:"message"`
	// Inputs are those that are held.
	Inputs []UrgentInput `json:"-"`
}

func (s Summary) summaryLine(p Policy, reasons map[Reason]string) string {
	all := s.Updated + s.Updating + s.Waiting + s.Degraded
	parts := []string{fmt.Sprintf("%d of %s done", s.Updated, bundle.Count(all, "node"))}
	for _, x := range []struct {
		n    int
		what string
	}{{s.Updating, "in progress"}, {s.Waiting, "waiting"}, {s.Degraded, "failed"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	line := strings.Join(parts, ", ")
	switch {
	case s.Updating+s.Waiting+s.Degraded == 0:
		return line
	case p.Paused:
		return line + "; paused; fix: set rollout.paused to false"
	case s.Stopped != "":
		return line + "; " + s.Stopped + "; fix: " + s.Fix
	}
	for _, r := range []Reason{ReasonSettling, ReasonUnavailable, ReasonDrain, ReasonWindow, ReasonStep, ReasonApplying,
		ReasonPayload, ReasonRoom, ReasonUnreachable, ReasonLeaving, ReasonPaused, ReasonJoining, ReasonUnknown,
		ReasonForeign} {
		if why := reasons[r]; why != "" {
			return line + "; " + why
		}
	}
	return line
}

// Plan is what to do next, and where every node is.
type Plan struct {
	// Steps are at most one for each node.
	Steps []Step
	// Nodes are all nodes, by name.
	Nodes []Status
	Fleet Summary
	// Wake is the time until the next decision is due although nothing changes; zero if none is.
	Wake time.Duration
}
