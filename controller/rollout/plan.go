package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

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

// planner is one decision.
type planner struct {
	policy Policy
	// now is what is written on Nodes and shown to people. Nothing is decided by it.
	now     time.Time
	members []member
	gate    map[kind]gate
	// stopped says why failures keep the rollout from starting nodes.
	stopped string
	// fix says what to do about the first of them.
	fix string
	// limit is how many nodes may be unavailable, away how many are or will be after the steps, restarts likewise.
	limit, away, restarts int
	// fits is true if all claims in this view fit together, withdraw are the names of those that have to go.
	fits     bool
	withdraw []string
	plan     Plan
}

// PlanSteps decides about the whole fleet. The steps may be made in any order, all or some of them.
func PlanSteps(f Fleet) Plan {
	p := &planner{policy: f.Policy, now: f.Now.UTC().Truncate(time.Second), limit: f.Policy.limit(len(f.Nodes))}
	for _, n := range f.Nodes {
		m := judge(n, p.policy)
		p.members = append(p.members, m)
		p.away += count(m.away)
		p.restarts += count(m.restarting(p.policy))
	}
	p.gate = p.gates()
	p.stopped = p.halted()
	p.countClaims()
	slices.SortFunc(p.members, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), strings.Compare(a.Name, b.Name))
	})
	for i := range p.members {
		p.decide(&p.members[i])
	}
	slices.SortFunc(p.plan.Nodes, func(a, b Status) int { return strings.Compare(a.Node, b.Node) })
	p.plan.Fleet = p.summary()
	return p.plan
}

// order is that of starts: nodes that are away already cost nobody anything.
func (m *member) order() int {
	switch {
	case !m.State.Claim.IsZero():
		return 0
	case m.awayAlone:
		return 1
	}
	return 2
}

func count(b bool) int { //nolint:revive // a number, not a mode
	if b {
		return 1
	}
	return 0
}

// countClaims finds out which claims have to be withdrawn: of those that are not held the latest ones, until the rest fits.
func (p *planner) countClaims() {
	p.fits = p.away <= p.limit
	var open []*member
	for i := range p.members {
		if c := p.members[i].State.Claim; !c.IsZero() && !c.Held {
			open = append(open, &p.members[i])
		}
	}
	slices.SortFunc(open, func(a, b *member) int {
		return cmp.Or(b.State.Claim.Taken.Compare(a.State.Claim.Taken), strings.Compare(b.Name, a.Name))
	})
	away := p.away
	for _, m := range open {
		if away > p.limit && m.Ready {
			p.withdraw = append(p.withdraw, m.Name)
			away -= count(!m.awayAlone)
		}
	}
}

// place reports whether the node may take a place. One that is not Ready has one already: what is done to it costs nothing more.
func (p *planner) place(m *member) bool {
	return !m.Ready || p.away+count(!m.away) <= p.limit
}

// decide makes the step of one node, or says what it waits for.
func (p *planner) decide(m *member) {
	p.alarm(m)
	switch {
	case m.Foreign != "":
		p.wait(m, ReasonForeign, m.Foreign)
	case m.Joining:
		p.join(m)
	case m.asked():
		p.retry(m)
	case !m.State.Claim.IsZero() || m.cordonedByUs() || m.drastic():
		p.claimed(m)
	case m.current:
		p.have(m)
	default:
		p.start(m)
	}
	p.noteTime(m)
}

// join publishes for a node that has no pods yet: everything is permitted, and it waits for nobody.
func (p *planner) join(m *member) {
	if m.Wanted != "" && (m.Published != m.Wanted || m.expired()) {
		p.publish(m, bundle.ImpactReboot, "the node is joining")
		return
	}
	p.wait(m, ReasonJoining, "the node is joining")
}

// have is for a node that has what is wanted.
func (p *planner) have(m *member) {
	switch {
	case !m.unconfirmed() && m.PayloadKept:
		p.wait(m, ReasonPayload, "executables are being copied to the host; it has every other change that needs none of them")
	case !m.unconfirmed():
		p.wait(m, ReasonCurrent, "has the wanted bundle")
	case m.settled(p.policy):
		s := m.State
		s.Turn.Confirmed = p.now
		if s.Turn.Ended.IsZero() {
			s.Turn.Ended = p.now
		}
		p.step(m, Step{Action: ActionConfirm, State: s, Why: "the canary works with the bundle"})
	case m.failed != "":
		p.wait(m, ReasonFailed, m.failed)
	case m.turn.Ended.IsZero() && m.Ready:
		s := m.State
		s.Turn.Ended = p.now
		p.step(m, Step{Action: ActionRelease, State: s, Why: "the canary has the bundle and is observed"})
	case !m.Ready:
		p.wait(m, ReasonSettling, "the canary is not Ready")
	case m.Unsettled != "":
		p.wait(m, ReasonSettling, "the canary has not settled: "+m.Unsettled)
	default:
		p.wait(m, ReasonSettling, "the canary is observed until "+p.in(m.settlesIn(p.policy)))
	}
}

// start is for a node without a claim that does not have what is wanted.
func (p *planner) start(m *member) {
	reason, why := p.held(m)
	switch {
	case m.lost():
		s := m.State
		s.Turn.Permitted, s.Turn.Impact = p.now, bundle.ImpactNone
		p.step(m, Step{Action: ActionPermit, Bundle: m.Published, Permit: bundle.ImpactNone, State: s, Why: "the node agent does not answer: its permission is taken back"})
	case m.waitsForRoom() && m.Published == m.Wanted && m.reachable && !m.Paused:
		p.awaitRoom(m)
	case m.Wanted != "" && m.Published == m.Wanted && !m.done && m.failed == "" && !m.Paused && (m.reachable || m.Permitted != bundle.ImpactNone):
		p.moving(m)
	case why != "":
		p.urgent(m, reason, why)
	case m.Permitted == bundle.ImpactRestart && m.answered && !m.done && !m.late && m.Report.State == published.StateApplying:
		p.wait(m, ReasonApplying, "the node agent still applies the bundle before this one")
	case !m.reachable && m.Published != m.Wanted:
		p.publish(m, bundle.ImpactNone, "the node does not answer; what it needs beyond impact none is permitted when it does")
	case !m.reachable:
		p.wait(m, ReasonUnreachable, "the node does not answer")
	case m.need == bundle.ImpactNone:
		p.publish(m, m.need, "nothing restarts")
	case m.waitsForRoom() && m.need != bundle.ImpactRestart: // of the bundle before
		p.publish(m, bundle.ImpactNone, "the disk of its host was full: the node is not drained before its agent says that there is room")
	case m.need == bundle.ImpactRestart:
		p.restart(m)
	default:
		p.take(m)
	}
}

// held says why a node that has something to do may not begin it.
func (p *planner) held(m *member) (Reason, string) {
	switch {
	case m.Wanted == "":
		return ReasonUnknown, "there is no bundle for the node"
	case m.failed != "":
		return ReasonFailed, m.failed
	case m.Leaving != "":
		return ReasonLeaving, m.Leaving
	case m.Paused:
		return ReasonPaused, "the node is paused"
	case p.policy.Paused:
		return ReasonPaused, "the rollout is paused"
	case p.stopped != "":
		return ReasonStopped, p.stopped
	case m.postponed(p.policy):
		return ReasonDrain, "its drain did not end in time and is tried again at " + p.in(p.policy.Timeout-m.Seen.Postponed)
	case m.PayloadPending:
		return ReasonPayload, "executables are being copied to the host"
	}
	if g := p.gate[m.kind()]; !g.allows(m.Name) {
		return ReasonCanary, "waits for " + canaries(g)
	}
	return "", ""
}

func canaries(g gate) string {
	if len(g.canaries) == 0 {
		return "a canary"
	}
	return fmt.Sprintf("%s %s", map[bool]string{true: "the canary", false: "the canaries"}[len(g.canaries) == 1], some(g.canaries))
}

// restart permits the restart of services where there is a place.
func (p *planner) restart(m *member) {
	if p.restarts >= p.policy.MaxParallel && !m.restarting(p.policy) {
		p.urgent(m, ReasonParallel, fmt.Sprintf("waits until fewer than %s restart", bundle.Count(p.policy.MaxParallel, "node")))
		return
	}
	p.restarts += count(!m.restarting(p.policy))
	p.publish(m, m.need, "services restart")
}

// urgent publishes what must not wait, and otherwise says what the node waits for.
func (p *planner) urgent(m *member, reason Reason, why string) {
	u := m.Urgent
	soon := reason == ReasonCanary && m.need == bundle.ImpactNone
	waits := reason != ReasonUnknown && reason != ReasonLeaving && !soon && (u.Bundle != m.Wanted || p.stopped == "" && m.failed == "")
	// The same may have been published as not urgent: then the agent of a paused node does not begin, and another one does not where it
	// has drift to repair that costs more.
	told := u.Bundle == m.Published && (m.PublishedUrgent || !m.Paused && !m.done || m.answered && m.Report.State == published.StateApplied)
	// An agent that restarts services may be applying; that of a paused node does not begin.
	if u.Bundle == "" || told || u.Cost != bundle.ImpactNone || !waits || m.restarting(p.policy) && (!m.Paused || m.answered) {
		p.wait(m, reason, why)
		return
	}
	s := p.turn(m, u.Bundle, bundle.ImpactNone)
	if m.failed != "" {
		s.Failed, s.FailedRetry = m.Wanted, retryOf(m.Retry)
	}
	p.step(m, Step{Action: ActionPublish, Bundle: u.Bundle, Permit: bundle.ImpactNone, Urgent: true, State: s, Why: u.what() + " must not wait (" + why + ")"})
}

// alarm notes what is urgent and cannot reach the node. A node that does not answer gets it when it does.
func (p *planner) alarm(m *member) {
	u := m.Urgent
	if m.current || m.Leaving != "" {
		return
	}
	_, why := p.held(m)
	switch {
	case u.Bundle == "":
	case m.waitsForRoom():
		p.hold(m, u.what(), m.Report.Message)
	case u.Bundle == m.Published && m.Ready && (m.late || m.done && m.answered):
		p.hold(m, u.what(), describe("the node agent has not applied it", m.Report.Message))
	case u.Bundle != m.Published && u.Cost != bundle.ImpactNone && why != "":
		p.hold(m, u.what()+" (impact "+string(u.Cost)+")", why)
	}
	if u.Mixed != "" && why != "" {
		p.plan.Fleet.Urgent = append(p.plan.Fleet.Urgent, Held{Node: m.Name, Message: u.Mixed + ", which changes together with other settings of the node: " + why})
	}
}

func (p *planner) hold(m *member, what, why string) {
	p.plan.Fleet.Urgent = append(p.plan.Fleet.Urgent, Held{Node: m.Name, Message: what + ": " + why, Inputs: m.Urgent.Inputs})
}

// publish publishes what is wanted with a permission.
func (p *planner) publish(m *member, permit bundle.Impact, why string) {
	action := ActionPublish
	if m.Published == m.Wanted {
		action = ActionPermit
	}
	p.step(m, Step{Action: action, Bundle: m.Wanted, Permit: permit, Again: m.expired(), State: p.turn(m, m.Wanted, permit), Why: why})
}

// turn returns the state of a node when a bundle is published on it.
func (p *planner) turn(m *member, b bundle.Digest, permit bundle.Impact) State {
	t := Turn{Bundle: b, Impact: permit, Begun: p.now, Permitted: p.now, Retry: retryOf(m.Retry), Canary: !p.gate[m.kind()].open() && b == m.Wanted && !m.Joining}
	if c := m.State.Claim; !c.IsZero() {
		t.Begun = c.Taken
	}
	if m.turn.Bundle == b && m.turn.Ended.IsZero() && m.State.Claim.IsZero() {
		t.Begun = m.turn.Begun
	}
	s := m.State.turned(t, m.past())
	if s.Failed != m.Wanted || b == m.Wanted {
		s.Failed, s.FailedRetry = "", ""
	}
	return s
}

// past returns the turn that the node has behind it, with its end as far as it is known.
func (m *member) past() Turn {
	t := m.turn
	if !m.answered {
		return t
	}
	t.Result = m.Report.State
	if t.Ended.IsZero() && m.Report.State == published.StateApplied && m.Since.After(t.Begun) {
		t.Ended = m.Since.UTC().Truncate(time.Second)
	}
	return t
}
