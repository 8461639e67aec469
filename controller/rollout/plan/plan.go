package plan

import (
	"slices"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
)

// NextSteps decides about the whole fleet. The steps may be made in any order, all or some of them.
func NextSteps(f Fleet) Plan {
	p := newPlanner(f)
	for _, m := range p.nodes {
		p.decideNode(m)
	}
	slices.SortFunc(p.plan.Nodes, func(a, b Status) int { return strings.Compare(a.Node, b.Node) })
	p.plan.Fleet = p.summarizeFleet()
	return p.plan
}

// newPlanner finds out what the decision about each node depends on: nodes in the order of starts, canaries, failures
// and slots.
func newPlanner(f Fleet) *planner {
	p := &planner{policy: f.Policy, now: f.Now.UTC().Truncate(time.Second),
		limit: f.Policy.unavailableLimit(len(f.Nodes)), nodes: make([]*nodeState, len(f.Nodes)), rules: newRuleTables()}
	states := make([]nodeState, len(f.Nodes))
	for i := range f.Nodes {
		m := &states[i]
		m.evaluateNode(&f.Nodes[i], &p.policy)
		p.nodes[i] = m
		p.unavailable += boolToInt(m.unavailable)
		p.restarting += boolToInt(m.isRestarting())
	}
	p.gate = p.canaryGates()
	p.stopped = p.stopReason()
	p.countReservations()
	p.countWindowsBoots()
	slices.SortFunc(p.nodes, compareStarts)
	return p
}

// decideNode makes the step of one node, or reports what it waits for.
func (p *planner) decideNode(m *nodeState) {
	d := p.newDecision(m)
	d.applyFirst(p.rules.alert)
	d.applyFirst(p.rules.node)
	d.noteElapsed()
}

func (p *planner) newDecision(m *nodeState) decision {
	d := decision{nodeState: m, fleet: p}
	d.blocked = d.findBlocker()
	return d
}

// nodeRules are for every node.
func nodeRules() []nodeRule {
	return []nodeRule{
		{"a node with annotations of a newer operator is left as it is",
			func(d decision) bool { return d.Foreign != "" },
			func(d decision) { d.reportWaiting(ReasonForeign, d.Foreign) }},
		{"a node that was told to end is told nothing else",
			func(d decision) bool { return d.Removing },
			func(d decision) { d.reportWaiting(ReasonLeaving, d.Leaving) }},
		{"a joining node gets its bundle and every permission at once",
			func(d decision) bool { return d.Joining }, decision.publishForJoin},
		// A person does, by another value of the annotation.
		{"a requested retry gives a failed update its time again",
			func(d decision) bool {
				return d.failed != "" && d.Retry != "" && d.publishesWanted() && !d.turn.IsZero() &&
					d.turn.Retry != retryDigest(d.Retry)
			},
			decision.restartTurn},
		{"a permission that others replaced is signed again",
			func(d decision) bool { return d.replaced && d.usesDisruption() && d.publishesWanted() },
			decision.restorePermission},
		{"a boot that a person or Windows asks for has a slot of its own",
			decision.isBooting, func(d decision) { d.applyFirst(d.fleet.rules.boot) }},
		{"a node that has a slot, or something left of one, continues its update",
			func(d decision) bool { return d.hasSlot() || d.cordonedByUs() || d.isDisruptive() },
			func(d decision) { d.applyFirst(d.fleet.rules.slot) }},
		{"a node that is up to date is done, unless it is a canary that soaks",
			func(d decision) bool { return d.upToDate }, func(d decision) { d.applyFirst(d.fleet.rules.upToDate) }},
		{"any other node is started", nil, func(d decision) { d.applyFirst(d.fleet.rules.start) }},
	}
}

// publishForJoin publishes for a node that has no pods yet: everything is permitted, and it waits for no other node.
// One that joins again, because its removal was taken back, may have been told of the wanted bundle without a
// permission.
func (d decision) publishForJoin() {
	if d.Wanted != "" && (!d.publishesWanted() || d.permissionExpired() || d.needsMoreForJoin()) {
		d.publishWanted(bundle.ImpactReboot, "the node is joining")
		return
	}
	d.reportWaiting(ReasonJoining, "the node is joining")
}

// needsMoreForJoin reports whether the agent waits for a permission that it does not have.
func (d decision) needsMoreForJoin() bool {
	return d.answered && d.Report.State == published.StateNeedsPermission && d.Permitted != bundle.ImpactReboot
}

// upToDateRules are for a node that has its wanted bundle.
func upToDateRules() []nodeRule {
	return []nodeRule{
		{"a node whose executables were kept waits for the newer ones",
			func(d decision) bool { return d.isConfirmed() && d.PayloadKept }, func(d decision) {
				d.reportWaiting(ReasonPayload,
					"executables are being copied to the host; all changes that do not need them are applied")
			}},
		{"a node that is no unconfirmed canary is done", decision.isConfirmed, func(d decision) {
			d.reportWaiting(ReasonUpdated, joinMessage("the node has the newest bundle", d.describeHeldBoot()))
		}},
		{"a canary that has soaked is confirmed", decision.hasSoaked, decision.confirmCanary},
		{"a canary that failed is not confirmed",
			func(d decision) bool { return d.failed != "" },
			func(d decision) { d.reportWaiting(ReasonFailed, d.failed) }},
		{"the end of a canary's update is written before it soaks",
			func(d decision) bool { return d.turn.Ended.IsZero() && d.Ready }, decision.endCanaryTurn},
		{"a canary that is not Ready does not soak",
			func(d decision) bool { return !d.Ready },
			func(d decision) { d.reportWaiting(ReasonSettling, "canary, not Ready") }},
		{"a canary with pods that are not healthy does not soak",
			func(d decision) bool { return d.Unsettled != "" }, func(d decision) {
				d.reportWaiting(ReasonSettling, "canary, not settled: "+d.Unsettled)
			}},
		{"any other canary soaks", nil, func(d decision) {
			d.reportWaiting(ReasonSettling, "canary, settling until "+d.fleet.formatAfter(d.soakTimeLeft()))
		}},
	}
}

func (d decision) confirmCanary() {
	s := d.State
	s.Turn.Confirmed = d.fleet.now
	if s.Turn.Ended.IsZero() {
		s.Turn.Ended = d.fleet.now
	}
	d.addStep(Step{Action: ActionConfirm, State: s, Why: "it is healthy with the new bundle"})
}

func (d decision) endCanaryTurn() {
	s := d.State
	s.Turn.Ended = d.fleet.now
	d.addStep(Step{Action: ActionRelease, State: s, Why: "the canary has the bundle and is settling"})
}

// restartTurn gives a turn that has failed its time again, because a person asks for that. What the node agent reported
// as failed it retries alone.
func (d decision) restartTurn() {
	s := d.State
	s.Turn.Permitted, s.Turn.Retry = d.fleet.now, retryDigest(d.Retry)
	s.Turn.Ended, s.Turn.Confirmed = time.Time{}, time.Time{}
	d.addStep(Step{Action: ActionNote, State: s,
		Why: "retry requested (annotation retry); rollout.nodeTimeout starts again"})
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
		case nodestate.Stale, nodestate.Joining, nodestate.Removing, nodestate.Refused, nodestate.NotReporting:
			// no phases of a rollout
		}
		if reasons[n.Reason] == "" {
			reasons[n.Reason] = n.Node + ": " + n.Message
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

func newRuleTables() ruleTables {
	return ruleTables{
		node: nodeRules(), upToDate: upToDateRules(), start: startRules(), urgent: urgentRules(), alert: alertRules(),
		boot: bootRules(), slot: slotRules(),
		drain: drainRules(), blocker: blockerRules(),
	}
}

// wakeForWindow has the next decision made when the next window opens. It is for all nodes that wait, also for those
// about which nothing is decided again: Closed is another one then.
func (p *planner) wakeForWindow() {
	for _, opens := range []time.Time{p.policy.Closed.Restart, p.policy.Closed.Drain, p.policy.Closed.Reboot} {
		if left := opens.Sub(p.now); left > 0 && (p.plan.Wake == 0 || left < p.plan.Wake) {
			p.plan.Wake = left
		}
	}
}
