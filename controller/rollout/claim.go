package rollout

import (
	"fmt"

	"wmco/bundle"
	"wmco/bundle/published"
)

// take claims a place for a node that has to be drained.
func (p *planner) take(m *member) {
	if !p.place(m) {
		p.urgent(m, ReasonUnavailable, p.unavailable())
		return
	}
	p.away += count(!m.away)
	s := m.State
	s.Claim = Claim{Taken: p.now}
	step := Step{Action: ActionReserve, Why: "the change has impact " + string(m.need)}
	if !m.Unschedulable {
		step.Cordon = SwitchOn
	}
	if !m.ScaleDownDisabled {
		step.ScaleDown, s.Claim.ScaleDown = SwitchOn, true
	}
	step.State = s
	p.step(m, step)
}

// unavailable names the nodes that use the places.
func (p *planner) unavailable() string {
	var names []string
	for i := range p.members {
		if m := &p.members[i]; m.away {
			names = append(names, m.Name+" ("+m.absence()+")")
		}
	}
	return fmt.Sprintf("waits for a place: at most %s may be unavailable, and these are: %s", bundle.Count(p.limit, "node"), some(names))
}

func (m *member) absence() string {
	switch {
	case !m.State.Claim.IsZero():
		return describe("its turn", m.DrainBlocked)
	case m.Leaving != "":
		return m.Leaving
	case !m.Ready:
		return "not Ready"
	case m.Joining:
		return "joining"
	case m.cordonedByUs() || m.drastic():
		return "its turn ends"
	}
	return "cordoned by somebody else"
}

// claimed is for a node that has a claim, or something that is left of one.
func (p *planner) claimed(m *member) {
	_, why := p.held(m)
	begun := !m.State.Claim.IsZero() && why == "" && !m.current
	switch {
	case m.unbegun():
		p.release(m, "the node was paused before its node agent began")
	case m.waitsForRoom() && m.Published == m.Wanted && m.drastic():
		p.release(m, m.Report.Message)
	case m.working() && !(begun && m.reachable && m.Published != m.Wanted):
		p.moving(m)
	case begun && (m.need.Rank() >= bundle.ImpactDrain.Rank() || m.working()) && m.reachable:
		p.proceed(m)
	case m.Ready || !m.current:
		p.release(m, why)
	default:
		p.wait(m, ReasonApplying, "has the bundle and is not Ready yet")
	}
}

// proceed is for a claimed node that has something drastic to do.
func (p *planner) proceed(m *member) {
	c := m.State.Claim
	switch {
	case !c.Held && (p.fits || !m.Ready):
		s := m.State
		s.Claim.Held = true
		p.step(m, Step{Action: ActionConfirmReservation, State: s, Why: "all claims fit"})
	case !c.Held && contains(p.withdraw, m.Name):
		p.release(m, p.unavailable())
	case !c.Held:
		p.wait(m, ReasonUnavailable, "waits until a later claim is withdrawn")
	case !m.Drained && !m.working() && m.Seen.Taken >= p.policy.Timeout:
		s := m.State
		s.Postponed = p.now.Add(p.policy.Timeout)
		p.giveBack(m, s, describe("the drain did not end in "+p.policy.Timeout.String(), m.DrainBlocked))
	case !m.Drained || !m.Unschedulable:
		s := m.State
		s.Claim.Blocked = ""
		if m.DrainForbidden {
			s.Claim.Blocked = published.Shorten(m.DrainBlocked)
		}
		step := Step{Action: ActionDrain, State: s, Why: describe("is drained for impact "+string(m.need), m.DrainBlocked)}
		if !m.Unschedulable {
			step.Cordon = SwitchOn
		}
		p.step(m, step)
	default:
		p.publish(m, larger(m.need, bundle.ImpactDrain), "the node is drained")
	}
}

// release gives a place back.
func (p *planner) release(m *member, why string) { p.giveBack(m, m.State, why) }

// giveBack gives the place of a node back that will have this state besides.
func (p *planner) giveBack(m *member, s State, why string) {
	step := Step{Action: ActionRelease, Why: why}
	switch {
	case !s.Claim.IsZero() && !s.Claim.Held:
		step.Action = ActionCancelReservation
	case m.drastic() && m.turn.Bundle == m.Published && s.Turn.Ended.IsZero():
		s.Turn.Ended, step.Why = p.now, "the turn has ended"
	}
	if m.drastic() {
		step.Bundle, step.Permit = m.Published, bundle.ImpactRestart
	}
	if s.Claim.ScaleDown {
		step.ScaleDown = SwitchOff
	}
	if m.CordonedFor == published.CordonedForRollout {
		step.Cordon = SwitchOff
	}
	s.Claim = Claim{}
	step.State = s
	if step.Why == "" {
		step.Why = "nothing is left to do that needs a drained node"
	}
	p.step(m, step)
}
