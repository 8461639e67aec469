package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// Phase is where a node is.
type Phase string

const (
	// PhaseDone means that the node has what is wanted.
	PhaseDone Phase = "Done"
	// PhaseMoving means that it is its turn.
	PhaseMoving Phase = "Moving"
	// PhaseWaiting means that its turn has not come.
	PhaseWaiting Phase = "Waiting"
	// PhaseFailed means that the bundle did not work on it.
	PhaseFailed Phase = "Failed"
)

// Reason is what a node waits for, or what it does.
type Reason string

const (
	// ReasonCurrent means that the node has the wanted bundle.
	ReasonCurrent Reason = "Current"
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
	Done    int `json:"done"`
	Moving  int `json:"moving"`
	Waiting int `json:"waiting"`
	Failed  int `json:"failed"`
	// Unavailable is how many nodes are, Limit how many may be.
	Unavailable int `json:"unavailable"`
	Limit       int `json:"limit"`
	// Stopped says why no node is started; empty if nothing failed.
	Stopped string `json:"stopped,omitempty"`
	// Fix says what to do about what stopped it.
	Fix string `json:"fix,omitempty"`
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

// step adds a step, and says so.
func (p *planner) step(m *member, s Step) {
	s.Node = m.Name
	s.State.Elapsed = p.elapsed(m, s)
	p.plan.Steps = append(p.plan.Steps, s)
	message := string(s.Action)
	if s.Permit != "" {
		message += " (at most impact " + string(s.Permit) + ")"
	}
	p.status(m, ReasonStep, message+": "+s.Why)
}

// wait says what a node waits for.
func (p *planner) wait(m *member, r Reason, message string) { p.status(m, r, message) }

func (p *planner) status(m *member, r Reason, message string) {
	s := Status{Node: m.Name, Phase: m.phase(r), Reason: r, Message: message, Canary: m.turn.Canary || slices.Contains(p.gate[m.kind()].canaries, m.Name)}
	if !m.current {
		s.Impact = m.need
	}
	if m.State.Claim.Held && !m.Drained {
		s.DrainBlocked = m.DrainBlocked
	}
	p.plan.Nodes = append(p.plan.Nodes, s)
	for _, left := range m.waits(p.policy) {
		if left > 0 && (p.plan.Wake == 0 || left < p.plan.Wake) {
			p.plan.Wake = left
		}
	}
}

func (m *member) phase(r Reason) Phase {
	switch r {
	case ReasonCurrent:
		return PhaseDone
	case ReasonStep, ReasonApplying, ReasonSettling:
		if m.failed != "" {
			return PhaseFailed
		}
		return PhaseMoving
	case ReasonFailed:
		return PhaseFailed
	case ReasonCanary, ReasonUnavailable, ReasonParallel, ReasonPaused, ReasonStopped, ReasonDrain, ReasonPayload, ReasonRoom, ReasonUnreachable,
		ReasonLeaving, ReasonJoining, ReasonUnknown, ReasonForeign:
	}
	return PhaseWaiting
}

// moving says what the agent does.
func (p *planner) moving(m *member) {
	what := map[published.State]string{
		published.StateApplying: "applies the bundle", published.StateRebootPending: "reboots",
		published.StatePayloadMissing: "waits for executables", published.StateFailed: "tries again: " + m.Report.Message,
	}[m.Report.State]
	switch {
	case m.failed != "":
		p.wait(m, ReasonFailed, m.failed)
		return
	case m.turn.IsZero():
		p.wait(m, ReasonApplying, "what is published was not noted by a rollout; its agent has not ended")
		return
	case !m.answered:
		what = "has not answered yet"
	case what == "":
		what = "has been permitted impact " + string(m.Permitted)
	}
	limit := "its turn may take until " + p.in(p.policy.Timeout-m.Seen.Permitted)
	if m.late {
		limit = "its turn takes longer than " + p.policy.Timeout.String() + " (fix: check the host)"
	}
	p.wait(m, ReasonApplying, what+"; "+limit)
}

// waits are the times until something about the node changes although nothing happens; those that have passed are not above zero.
func (m *member) waits(p Policy) []time.Duration {
	list := m.notes(p)
	if m.isTimed() {
		list = append(list, p.Timeout-m.Seen.Permitted)
	}
	if m.unconfirmed() && !m.turn.Ended.IsZero() {
		list = append(list, m.settlesIn(p), p.Settle+p.Timeout+time.Second-m.Seen.Ended)
	}
	if m.State.Claim.Held {
		list = append(list, p.Timeout-m.Seen.Taken)
	}
	if m.current && !m.Ready {
		list = append(list, p.Settle-m.Seen.Reported)
	}
	if !m.State.Postponed.IsZero() {
		list = append(list, p.Timeout-m.Seen.Postponed)
	}
	return list
}

// summary counts, and finds the one line that explains the rest.
func (p *planner) summary() Summary {
	s := p.plan.Fleet
	slices.SortFunc(s.Urgent, func(a, b Held) int { return strings.Compare(a.Node, b.Node) })
	s.Limit, s.Stopped = p.limit, p.stopped
	if s.Stopped != "" {
		s.Fix = p.fix
	}
	for i := range p.members {
		s.Unavailable += count(p.members[i].away)
	}
	reasons := map[Reason]string{}
	for _, n := range p.plan.Nodes {
		switch n.Phase {
		case PhaseDone:
			s.Done++
		case PhaseMoving:
			s.Moving++
		case PhaseWaiting:
			s.Waiting++
		case PhaseFailed:
			s.Failed++
		}
		if reasons[n.Reason] == "" {
			reasons[n.Reason] = n.Node + " " + n.Message
		}
	}
	s.Message = s.line(p.policy, reasons)
	return s
}

func (s Summary) line(p Policy, reasons map[Reason]string) string {
	parts := []string{fmt.Sprintf("%d of %s done", s.Done, bundle.Count(s.Done+s.Moving+s.Waiting+s.Failed, "node"))}
	for _, x := range []struct {
		n    int
		what string
	}{{s.Moving, "moving"}, {s.Waiting, "waiting"}, {s.Failed, "failed"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	line := strings.Join(parts, ", ")
	switch {
	case s.Moving+s.Waiting+s.Failed == 0:
		return line
	case p.Paused:
		return line + "; paused (fix: set rollout.paused to false)"
	case s.Stopped != "":
		return line + "; " + s.Stopped + " (fix: " + s.Fix + ")"
	}
	for _, r := range []Reason{ReasonSettling, ReasonUnavailable, ReasonDrain, ReasonStep, ReasonApplying, ReasonPayload, ReasonRoom, ReasonUnreachable, ReasonLeaving, ReasonPaused, ReasonJoining, ReasonUnknown, ReasonForeign} {
		if why := reasons[r]; why != "" {
			return line + "; " + why
		}
	}
	return line
}

// in returns the time of day that is expected after a wait, for people.
func (p *planner) in(left time.Duration) string {
	return p.now.Add(left).Round(time.Second).UTC().Format(time.RFC3339)
}

func contains(list []string, name string) bool { return slices.Contains(list, name) }
