package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/published"
)

// reserveSlot reserves a slot for a node that has to be drained.
func (d decision) reserveSlot() {
	if !d.slotAvailable() {
		d.publishUrgentOrWait(waiting{ReasonUnavailable, d.fleet.describeUnavailable()})
		return
	}
	d.takeSlot("the change needs a " + string(d.need))
}

// takeSlot reserves a slot where there is one.
func (d decision) takeSlot(why string) {
	if !d.slotAvailable() {
		d.reportWaiting(ReasonUnavailable, d.fleet.describeUnavailable())
		return
	}
	d.fleet.unavailable += boolToInt(!d.unavailable)
	s := d.State
	s.Slot = Slot{Taken: d.fleet.now}
	step := Step{Action: ActionReserve, Why: why}
	if !d.Unschedulable {
		step.Cordon = SwitchOn
	}
	if !d.ScaleDownDisabled {
		step.ScaleDown, s.Slot.ScaleDown = SwitchOn, true
	}
	step.State = s
	d.addStep(step)
}

// countReservations finds out which reservations have to be canceled: of those that are not confirmed the latest ones,
// until the rest fits.
func (p *planner) countReservations() {
	p.reservationsFit = p.unavailable <= p.limit
	unavailable := p.unavailable
	for _, m := range p.openReservations() {
		if unavailable > p.limit && m.Ready {
			p.toCancel = append(p.toCancel, m.Name)
			unavailable -= boolToInt(!m.unavailableAlone)
		}
	}
}

// describeUnavailable names the nodes that use the slots. What a decision does changes none of that.
func (p *planner) describeUnavailable() string {
	if p.unavailableText != "" {
		return p.unavailableText
	}
	var names []string
	for _, m := range p.nodes {
		if m.unavailable {
			names = append(names, m.Name+" ("+m.unavailableReason()+")")
		}
	}
	who := "unavailable now: " + joinFirst(names)
	if len(names) == 0 {
		who = "another node is taking the last one"
	}
	p.unavailableText = fmt.Sprintf("waiting for a slot (rollout.maxUnavailable: %s); %s", bundle.Count(p.limit, "node"), who)
	return p.unavailableText
}

func (m *nodeState) unavailableReason() string {
	switch {
	case m.hasSlot():
		return joinMessage("being updated", m.DrainBlocked)
	case m.Leaving != "":
		return m.Leaving
	case !m.Ready:
		return "not Ready"
	case m.Joining:
		return "joining"
	case m.cordonedByUs() || m.isDisruptive():
		return "being uncordoned"
	}
	if m.LeftCordoned {
		return "left cordoned by the existing operator; uncordoned when the node is adopted"
	}
	return "cordoned by another user"
}

// slotRules are for a node that has a slot, or something that is left of one.
func slotRules() []nodeRule {
	return []nodeRule{
		{"a paused node whose node agent does not begin releases its slot",
			decision.isPausedBeforeStart, func(d decision) {
				d.releaseSlot("the node is paused, and its agent has not started the change")
			}},
		{"a drained node whose disk is full releases its slot",
			func(d decision) bool { return d.waitsForRoom() && d.publishesWanted() && d.isDisruptive() },
			func(d decision) { d.releaseSlot(d.Report.Message) }},
		{"a node agent that uses a disruptive permission is waited for", decision.agentUsesDisruption,
			decision.waitForAgent},
		{"a node that needs its slot goes on with its drain",
			func(d decision) bool {
				return d.continuesTurn() && d.reachable && (d.needsDrain() || d.usesDisruption())
			},
			func(d decision) { d.applyFirst(d.fleet.rules.drain) }},
		{"a node that does not need its slot releases it",
			func(d decision) bool { return d.Ready || !d.upToDate },
			func(d decision) { d.releaseSlot(d.blocked.message) }},
		{"a node that has the bundle keeps its slot until it is Ready", nil, func(d decision) {
			d.reportWaiting(ReasonApplying, "the node has the bundle and is not Ready yet")
		}},
	}
}

// isPausedBeforeStart reports whether a disruptive permission is not used, because the node is paused: its agent does
// not begin now, nor try again what has failed. The time of a turn is long enough for one that began at the last moment
// to say so.
func (m *nodeState) isPausedBeforeStart() bool {
	return m.Paused && m.usesDisruption() && m.timedOut && !m.hasBegun()
}

// hasBegun reports whether the agent, by its report, is changing the host to the published bundle.
func (m *nodeState) hasBegun() bool {
	return m.answered && (m.Report.State == published.StateApplying || m.Report.State == published.StateRebootPending)
}

// agentUsesDisruption reports whether the agent may be at work on a drained node. Another wanted bundle may replace the
// one it works on, where the turn goes on.
func (d decision) agentUsesDisruption() bool {
	replaceable := d.continuesTurn() && d.reachable && !d.publishesWanted()
	return d.usesDisruption() && !replaceable
}

// continuesTurn reports whether the node has a slot, lacks the wanted bundle and may go on.
func (d decision) continuesTurn() bool { return d.hasSlot() && !d.isBlocked() && !d.upToDate }

// drainRules are for a node that needs its slot.
func drainRules() []nodeRule {
	return []nodeRule{
		// One of a node that is not Ready always fits: changing it costs nothing more.
		{"a reservation is confirmed when all reservations fit",
			func(d decision) bool { return !d.State.Slot.Held && (d.fleet.reservationsFit || !d.Ready) },
			decision.confirmReservation},
		{"the latest reservation that does not fit is canceled",
			func(d decision) bool { return !d.State.Slot.Held && slices.Contains(d.fleet.toCancel, d.Name) },
			func(d decision) { d.releaseSlot(d.fleet.describeUnavailable()) }},
		{"a reservation that is not confirmed waits for a later one to be canceled",
			decision.isUnconfirmedReservation, func(d decision) {
				d.reportWaiting(ReasonUnavailable, "waiting until another node gives its slot back: too many have taken one")
			}},
		{"a drain that does not end in time is postponed",
			func(d decision) bool { return !d.Drained && !d.usesDisruption() && d.Seen.Taken >= d.policy.Timeout },
			decision.postponeDrain},
		{"a node with a confirmed slot is cordoned and drained",
			func(d decision) bool { return !d.Drained || !d.Unschedulable }, decision.drainNode},
		{"a drained node gets the wanted bundle and the permission", nil, func(d decision) {
			d.publishWanted(largerImpact(d.need, bundle.ImpactDrain), "the node is drained")
		}},
	}
}

func (d decision) confirmReservation() {
	s := d.State
	s.Slot.Held = true
	d.addStep(Step{Action: ActionConfirmReservation, State: s, Why: "within rollout.maxUnavailable"})
}

func (d decision) postponeDrain() {
	s := d.State
	s.Postponed = d.fleet.now.Add(d.policy.Timeout)
	d.releaseSlotWith(s, joinMessage("the drain did not end in "+formatLimit(d.policy.Timeout), d.DrainBlocked))
}

func (d decision) drainNode() {
	s := d.State
	s.Slot.Blocked = ""
	if d.DrainForbidden {
		s.Slot.Blocked = published.Shorten(d.DrainBlocked)
	}
	why := "the change needs a " + string(largerImpact(d.need, bundle.ImpactDrain))
	if d.isBooting() {
		why = d.bootRequest()
	}
	step := Step{Action: ActionDrain, State: s, Why: cmp.Or(d.DrainBlocked, why)}
	if !d.Unschedulable {
		step.Cordon = SwitchOn
	}
	d.addStep(step)
}

// restorePermission permits again what was permitted in the turn, which goes on. Pods may have come in that time.
func (d decision) restorePermission() {
	if !d.Drained || !d.Unschedulable {
		d.drainNode()
		return
	}
	d.addStep(Step{Action: ActionPermit, Bundle: d.Published, Permit: d.Permitted, Boot: d.Boot.Permitted, State: d.State,
		Why: "the annotation is not the one that the operator wrote"})
}

// releaseSlot releases the slot of a node.
func (d decision) releaseSlot(why string) { d.releaseSlotWith(d.State, why) }

// releaseSlotWith releases the slot of a node that will have this state besides.
func (d decision) releaseSlotWith(s State, why string) {
	step := Step{Action: ActionRelease, Why: why}
	switch {
	case !s.Slot.IsZero() && !s.Slot.Held:
		step.Action = ActionCancelReservation
	case d.isDisruptive() && d.turn.Bundle == d.Published && s.Turn.Ended.IsZero():
		s.Turn.Ended = d.fleet.now
		if !d.bootOutstanding() {
			step.Why = "the update is finished"
		}
	}
	if d.isDisruptive() {
		step.Bundle, step.Permit = d.Published, bundle.ImpactRestart
	}
	if s.Slot.ScaleDown {
		step.ScaleDown = SwitchOff
	}
	if d.cordonedByUs() {
		step.Cordon = SwitchOff
	}
	if d.Boot.Permitted != "" && d.Boot.Permitted != s.WindowsBoot.Request { // done, or given up
		s.Booted = d.Boot.Permitted
	}
	s.Slot = Slot{}
	step.State = s
	if step.Why == "" {
		step.Why = "the node need not be drained any longer"
	}
	d.addStep(step)
}

// openReservations returns the nodes whose reservation is not confirmed, the latest first.
func (p *planner) openReservations() []*nodeState {
	var open []*nodeState
	for _, m := range p.nodes {
		if m.isUnconfirmedReservation() {
			open = append(open, m)
		}
	}
	slices.SortFunc(open, func(a, b *nodeState) int {
		return cmp.Or(b.State.Slot.Taken.Compare(a.State.Slot.Taken), strings.Compare(b.Name, a.Name))
	})
	return open
}
