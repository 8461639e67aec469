package plan

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"wmco/bundle"
	"wmco/bundle/published"
)

// isBooting reports whether a boot that is asked for is what happens to the node. A change that can begin, or has,
// comes first; a canary is observed to the end.
func (d decision) isBooting() bool {
	return d.bootOutstanding() || d.personAsksBoot() && d.mayBoot() || d.windowsAsksBoot() && d.mayBootForWindows()
}

// mayBoot reports whether a boot that is asked for may begin.
func (d decision) mayBoot() bool {
	switch {
	case d.Paused, d.Leaving != "", d.Published == "", d.replaced:
		return false
	case d.agentMayBeAtWork():
		return false
	case d.upToDate:
		return d.isConfirmed()
	}
	return d.isBlocked()
}

// addStep adds a step, and reports it.
func (d decision) addStep(s Step) {
	s.Node = d.Name
	s.State.Elapsed = d.elapsedAfterStep(s)
	d.fleet.plan.Steps = append(d.fleet.plan.Steps, s)
	d.reportWaiting(ReasonStep, joinMessage(s.describe(), s.Why))
}

// reportWaiting reports what a node waits for, or does.
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
	if d.State.Slot.Held && !d.Drained {
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
	case ReasonCanary, ReasonWindow, ReasonUnavailable, ReasonParallel, ReasonPaused, ReasonStopped, ReasonDrain,
		ReasonPayload, ReasonRoom, ReasonUnreachable,
		ReasonLeaving, ReasonJoining, ReasonUnknown, ReasonForeign:
	}
	return PhaseWaiting
}

// waitForAgent reports what the agent does.
func (d decision) waitForAgent() {
	switch {
	case d.failed != "":
		d.reportWaiting(ReasonFailed, d.failed)
		return
	case d.turn.IsZero():
		d.reportWaiting(ReasonApplying,
			"the operator has no record of publishing this bundle; waiting for the report of the node agent")
		return
	}
	limit := "times out at " + d.fleet.formatAfter(d.policy.Timeout-d.Seen.Permitted)
	if d.timedOut {
		limit = "takes longer than " + formatLimit(d.policy.Timeout) + " (rollout.nodeTimeout); fix: check the host"
	}
	d.reportWaiting(ReasonApplying, d.describeAgent()+"; "+limit)
}

// describeAgent returns what the agent does about the published bundle.
func (m *nodeState) describeAgent() string {
	if !m.answered {
		return "the node agent has not picked up the bundle yet"
	}
	switch m.Report.State { //nolint:exhaustive // for the others, the permission is reported
	case published.StateApplying:
		return "the node agent is applying the bundle"
	case published.StateRebootPending:
		return "the host is rebooting"
	case published.StatePayloadMissing:
		return "waiting for executables"
	case published.StateFailed:
		return "the node agent retries after: " + m.Report.Message
	}
	return "the node agent may start the change (impact " + string(m.Permitted) + ")"
}

// pendingTimers are the times until something about the node changes although nothing happens; those that have passed
// are not above zero.
func (m *nodeState) pendingTimers() []time.Duration {
	list := m.noteTimers()
	if m.hasTimeLimit() {
		list = append(list, m.policy.Timeout-m.Seen.Permitted)
	}
	if m.isUnconfirmed() && !m.turn.Ended.IsZero() {
		list = append(list, m.soakTimeLeft(), m.policy.Settle+m.policy.Timeout+time.Second-m.Seen.Ended)
	}
	if m.State.Slot.Held {
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

// formatLimit returns a time limit for people, such as 30m.
func formatLimit(d time.Duration) string { return duration.HumanDuration(d) }

// formatAfter returns the time of day that is expected after a wait, for people.
func (p *planner) formatAfter(left time.Duration) string {
	return p.now.Add(left).Round(time.Second).UTC().Format(time.RFC3339)
}

// canaryGate lets canaries pass before the others of their kind.
type canaryGate struct {
	// confirmed is the number of nodes that prove the bundle, wanted how many must.
	confirmed, wanted int
	// canaries are the names of those that may pass before it is open.
	canaries []string
}

func (g canaryGate) isOpen() bool { return g.confirmed >= g.wanted }

func (g canaryGate) describeCanaries() string {
	if len(g.canaries) == 0 {
		return "a canary"
	}
	return fmt.Sprintf("%s %s", map[bool]string{true: "canary", false: "canaries"}[len(g.canaries) == 1],
		joinFirst(g.canaries))
}

func (g canaryGate) allowsNode(name string) bool {
	return g.isOpen() || slices.Contains(g.canaries, name)
}

// planner is one decision about a fleet.
type planner struct {
	policy Policy
	// now is the time for Nodes and people. Nothing is decided by it.
	now time.Time
	// nodes are in the order of starts.
	nodes []*nodeState
	rules ruleTables
	gate  map[canaryKind]canaryGate
	// stopped is why failures keep the rollout from starting nodes, and stoppedBy the same without the causes.
	stopped, stoppedBy string
	// failures names the nodes that failed, whether or not they keep others; empty if none did.
	failures string
	// fix is what to do about the first of them.
	fix string
	// log is the end of the log of the service because of which that one was rolled back.
	log bundle.LogTail
	// limit is how many nodes may be unavailable, unavailable how many are or will be after the steps, restarting
	// likewise.
	limit, unavailable, restarting int
	// reservationsFit is true if all reservations in this view fit together, toCancel are the names of the nodes whose
	// do not.
	reservationsFit bool
	toCancel        []string
	// windowsBoots are the nodes of each group whose boots for Windows have not proved well yet.
	windowsBoots map[Group][]string
	// unavailableText is that of describeUnavailable, once it was needed.
	unavailableText string
	plan            Plan
}

func (d decision) isConfirmed() bool { return !d.isUnconfirmed() }

// ruleTables are made once for a plan: each is for many nodes.
type ruleTables struct {
	node, upToDate, start, urgent, alert, boot, slot, drain []nodeRule
	blocker                                                 []blockerRule
}

// decision is about one node, in the fleet as far as it has been planned.
type decision struct {
	*nodeState
	fleet *planner
	// blocked is why the node may not start. Its reason is empty if it may.
	blocked waiting
}

// waiting is what a node waits for.
type waiting struct {
	reason  Reason
	message string
}

// nodeRule is a rule that makes the step of a node, or reports what it waits for.
type nodeRule = rule[decision, func(decision)]

// applyFirst calls the result of the first rule of the table that applies.
func (d decision) applyFirst(rules []nodeRule) { firstRule(rules, d).result(d) }

// noteElapsed writes what has elapsed in a turn that takes long, if no other step does.
func (d decision) noteElapsed() {
	why := "recording the elapsed time of a long update"
	s := d.noteGoneBoots()
	if s.WindowsBoot != d.State.WindowsBoot {
		why = "Windows no longer needs the reboot that the host has had"
	} else if !d.mustRecordTimers() {
		return
	}
	if d.Foreign != "" || d.Joining || slices.ContainsFunc(d.fleet.plan.Steps, func(s Step) bool {
		return s.Node == d.Name
	}) {
		return
	}
	s.Elapsed = d.elapsedFor(s)
	d.fleet.plan.Steps = append(d.fleet.plan.Steps, Step{Node: d.Name, Action: ActionNote, State: s, Why: why})
}

// slotAvailable reports whether the node may have a slot. One that is not Ready has one already: changing it
// costs nothing more.
func (d decision) slotAvailable() bool {
	return !d.Ready || d.fleet.unavailable+boolToInt(!d.unavailable) <= d.fleet.limit
}

// blockerRule is a rule whose result is what the node waits for. Its message is about the node and the fleet.
type blockerRule = rule[decision, blocker]

type blocker struct {
	reason  Reason
	message func(decision) string
}

func (d decision) isBlocked() bool { return d.blocked.reason != "" }

// publishWanted publishes the wanted bundle with a permission.
func (d decision) publishWanted(permit bundle.Impact, why string) {
	action := ActionPublish
	if d.publishesWanted() {
		action = ActionPermit
	}
	d.addStep(Step{Action: action, Bundle: d.Wanted, Permit: permit, Again: d.permissionExpired(),
		State: d.stateWithTurn(d.Wanted, permit), Why: why})
}

// stateWithTurn returns the state of a node when a bundle is published on it.
func (d decision) stateWithTurn(b bundle.Digest, permit bundle.Impact) State {
	now, canary := d.fleet.now, !d.fleet.gate[d.canaryKind()].isOpen() && b == d.Wanted && !d.Joining
	t := Turn{Bundle: b, Impact: permit, Begun: now, Permitted: now, Retry: retryDigest(d.Retry), Canary: canary}
	if c := d.State.Slot; !c.IsZero() {
		t.Begun = c.Taken
	}
	if d.turn.Bundle == b && d.turn.Ended.IsZero() && !d.hasSlot() {
		t.Begun = d.turn.Begun
	}
	s := d.State.WithTurn(t, d.previousTurn())
	if s.Failed != d.Wanted || b == d.Wanted {
		s.Failed, s.FailedRetry = "", ""
	}
	return s
}

func (d decision) urgentHasImpact() bool { return d.Urgent.Cost != bundle.ImpactNone }

// mayBootForWindows reports whether a boot for Windows may begin, or go on before the agent is permitted it: by the
// rules for changes, on a node that has its wanted bundle. A wanted change comes first: it may boot the host.
func (d decision) mayBootForWindows() bool {
	return d.mayBoot() && d.upToDate && d.windowsBootHeld() == ""
}

// windowsBootHeld returns what keeps a boot for Windows from beginning; empty if nothing does.
func (d decision) windowsBootHeld() string {
	switch {
	case d.Paused:
		return "the node is paused"
	case d.policy.Paused:
		return "the rollout is paused"
	case d.fleet.stopped != "":
		return d.fleet.stoppedBy
	case d.hasSlot():
		return ""
	case d.fleet.now.Before(d.policy.Closed.Reboot):
		return "waiting for a maintenance window (rollout.windows); the next one opens at " +
			d.policy.Closed.Reboot.UTC().Format(time.RFC3339)
	}
	others := slices.DeleteFunc(slices.Clone(d.fleet.windowsBoots[d.Group]), func(name string) bool {
		return name == d.Name
	})
	if d.policy.Canaries == 0 || len(others) < d.policy.Canaries {
		return ""
	}
	return "waiting for " + joinFirst(others) + " to be Ready for rollout.settle after a reboot"
}
