package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
)

// Phase is where a node is in the rollout, in the words of all states of nodes.
type Phase = nodestate.State

const (
	// PhaseUpdated means that the node has what is wanted.
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
	// ReasonRoom means that the disk of its host is full. It goes on by itself when there is room.
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
	// DrainBlocked names what keeps the drain of the node from ending: the PodDisruptionBudget and the pod, or pods that are ending.
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
	// Stopped says why no node is started; empty if nothing failed.
	Stopped string `json:"stopped,omitempty"`
	// Fix says what to do about what stopped it.
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
	// Message says what cannot reach it, and why.
	Message string `json:"message"`
	// Inputs are those that are held.
	Inputs []UrgentInput `json:"-"`
}

// addStep adds a step, and says so.
func (d decision) addStep(s Step) {
	s.Node = d.Name
	s.State.Elapsed = d.elapsedAfterStep(s)
	d.fleet.plan.Steps = append(d.fleet.plan.Steps, s)
	message := string(s.Action)
	if s.Permit != "" {
		message += " (at most impact " + string(s.Permit) + ")"
	}
	d.reportWaiting(ReasonStep, message+": "+s.Why)
}

// reportWaiting says what a node waits for, or does.
func (d decision) reportWaiting(r Reason, message string) {
	p := d.fleet
	canary := d.turn.Canary || slices.Contains(p.gate[d.canaryKind()].canaries, d.Name)
	s := Status{Node: d.Name, Phase: d.phaseFor(r), Reason: r, Message: message, Canary: canary}
	if !d.upToDate {
		s.Impact = d.need
	}
	if d.isBooting() {
		s.Impact = bundle.ImpactReboot
	}
	if d.State.Claim.Held && !d.Drained {
		s.DrainBlocked = d.DrainBlocked
	}
	p.plan.Nodes = append(p.plan.Nodes, s)
	for _, left := range d.pendingTimers() {
		if left > 0 && (p.plan.Wake == 0 || left < p.plan.Wake) {
			p.plan.Wake = left
		}
	}
}

func (m *nodeState) phaseFor(r Reason) Phase {
	switch r {
	case ReasonUpdated:
		return PhaseUpdated
	case ReasonStep, ReasonApplying, ReasonSettling:
		if m.failed != "" {
			return PhaseDegraded
		}
		return PhaseUpdating
	case ReasonFailed:
		return PhaseDegraded
	case ReasonCanary, ReasonWindow, ReasonUnavailable, ReasonParallel, ReasonPaused, ReasonStopped, ReasonDrain, ReasonPayload, ReasonRoom, ReasonUnreachable,
		ReasonLeaving, ReasonJoining, ReasonUnknown, ReasonForeign:
	}
	return PhaseWaiting
}

// waitForAgent says what the agent does.
func (d decision) waitForAgent() {
	switch {
	case d.failed != "":
		d.reportWaiting(ReasonFailed, d.failed)
		return
	case d.turn.IsZero():
		d.reportWaiting(ReasonApplying, "bundle was not published by a rollout; waiting for the node agent")
		return
	}
	limit := "its turn may take until " + d.fleet.formatAfter(d.policy.Timeout-d.Seen.Permitted)
	if d.timedOut {
		limit = "its turn takes longer than " + d.policy.Timeout.String() + " (fix: check the host)"
	}
	d.reportWaiting(ReasonApplying, d.describeAgent()+"; "+limit)
}

// describeAgent says what the agent does about the published bundle.
func (m *nodeState) describeAgent() string {
	if !m.answered {
		return "has not answered yet"
	}
	switch m.Report.State { //nolint:exhaustive // of the others the permission is told
	case published.StateApplying:
		return "applies the bundle"
	case published.StateRebootPending:
		return "reboots"
	case published.StatePayloadMissing:
		return "waits for executables"
	case published.StateFailed:
		return "tries again: " + m.Report.Message
	}
	return "has been permitted impact " + string(m.Permitted)
}

// pendingTimers are the times until something about the node changes although nothing happens; those that have passed are not above zero.
func (m *nodeState) pendingTimers() []time.Duration {
	list := m.noteTimers()
	if m.hasTimeLimit() {
		list = append(list, m.policy.Timeout-m.Seen.Permitted)
	}
	if m.isUnconfirmed() && !m.turn.Ended.IsZero() {
		list = append(list, m.soakTimeLeft(), m.policy.Settle+m.policy.Timeout+time.Second-m.Seen.Ended)
	}
	if m.State.Claim.Held {
		list = append(list, m.policy.Timeout-m.Seen.Taken)
	}
	if m.upToDate && !m.Ready {
		list = append(list, m.policy.Settle-m.Seen.Reported)
	}
	if !m.State.Postponed.IsZero() {
		list = append(list, m.policy.Timeout-m.Seen.Postponed)
	}
	return append(list, m.windowsBootTimers()...)
}

// summarizeFleet counts, and finds the one line that explains the rest.
func (p *planner) summarizeFleet() Summary {
	s := p.plan.Fleet
	slices.SortFunc(s.Urgent, func(a, b Held) int { return strings.Compare(a.Node, b.Node) })
	s.Limit, s.Stopped = p.limit, p.stopped
	for _, m := range p.nodes {
		s.Unavailable += boolToInt(m.unavailable)
	}
	reasons := map[Reason]string{}
	for _, n := range p.plan.Nodes {
		switch n.Phase {
		case PhaseUpdated:
			s.Updated++
		case PhaseUpdating:
			s.Updating++
		case PhaseWaiting:
			s.Waiting++
		case PhaseDegraded:
			s.Degraded++
		case nodestate.Stale, nodestate.Joining, nodestate.Removing, nodestate.Refused, nodestate.NotReporting: // no phases of a rollout
		}
		if reasons[n.Reason] == "" {
			reasons[n.Reason] = n.Node + " " + n.Message
		}
	}
	if s.Stopped == "" && s.Updating+s.Waiting == 0 { // only failed nodes are left, if any
		s.Stopped = p.failures
	}
	if s.Stopped != "" {
		s.Fix, s.Log = p.fix, p.log
	}
	if reasons[ReasonWindow] != "" || slices.ContainsFunc(p.nodes, (*nodeState).windowsAsksBoot) {
		p.wakeForWindow()
	}
	s.Message = s.summaryLine(p.policy, reasons)
	return s
}

func (s Summary) summaryLine(p Policy, reasons map[Reason]string) string {
	parts := []string{fmt.Sprintf("%d of %s updated", s.Updated, bundle.Count(s.Updated+s.Updating+s.Waiting+s.Degraded, "node"))}
	for _, x := range []struct {
		n    int
		what string
	}{{s.Updating, "updating"}, {s.Waiting, "waiting"}, {s.Degraded, "degraded"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	line := strings.Join(parts, ", ")
	switch {
	case s.Updating+s.Waiting+s.Degraded == 0:
		return line
	case p.Paused:
		return line + "; paused (fix: set rollout.paused to false)"
	case s.Stopped != "":
		return line + "; " + s.Stopped + " (fix: " + s.Fix + ")"
	}
	for _, r := range []Reason{ReasonSettling, ReasonUnavailable, ReasonDrain, ReasonWindow, ReasonStep, ReasonApplying, ReasonPayload, ReasonRoom, ReasonUnreachable, ReasonLeaving, ReasonPaused, ReasonJoining, ReasonUnknown, ReasonForeign} {
		if why := reasons[r]; why != "" {
			return line + "; " + why
		}
	}
	return line
}

// formatAfter returns the time of day that is expected after a wait, for people.
func (p *planner) formatAfter(left time.Duration) string {
	return p.now.Add(left).Round(time.Second).UTC().Format(time.RFC3339)
}
