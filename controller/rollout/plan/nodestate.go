package plan

import (
	"cmp"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// nodeState is a node with what follows from it alone.
type nodeState struct {
	Node
	policy *Policy
	// replaced is true if others have replaced the annotation that permits what the turn needs: what the operator has
	// noted of the turn counts instead.
	replaced bool
	// turn is about the published bundle; zero if the operator did not note it.
	turn Turn
	// need is the impact of the node's way to Wanted.
	need bundle.Impact
	// upToDate is true if the node has Wanted.
	upToDate bool
	// answered is true if the report is about the published bundle, done if the agent does nothing more about it as it
	// is permitted.
	answered, done bool
	// unavailable is true for a node that is unavailable, unavailableAlone if it is without what a rollout does to it.
	unavailable, unavailableAlone bool
	// reachable is true if something on the node can be expected to act.
	reachable bool
	// timedOut is true if the turn takes longer than it may.
	timedOut bool
	// failed is why the node counts as failed; empty if it does not.
	failed string
}

// evaluateNode finds out what follows from a node. Each line may use the fields set above it.
func evaluateNode(n Node, p *Policy) nodeState {
	var m nodeState
	m.evaluateNode(&n, p)
	return m
}

// evaluateNode is the same in place: a thousand nodes are not copied.
func (m *nodeState) evaluateNode(n *Node, p *Policy) {
	m.Node, m.policy = *n, p
	if m.replaced = m.lostPermission(); m.replaced {
		m.Published, m.Permitted, m.Boot.Permitted = n.State.Turn.Bundle, n.State.Turn.Impact, n.State.Turn.Boot
	}
	if n.State.Turn.Bundle == m.Published {
		m.turn = n.State.Turn
	}
	m.answered = m.Published != "" && m.Report.State != "" && m.Report.Desired == m.Published
	m.upToDate = m.Wanted != "" && m.publishesWanted() && m.answered && m.Report.State == published.StateApplied
	m.need = m.neededImpact()
	m.done = m.answered && m.agentFinished()
	m.unavailableAlone = !m.Ready || m.Leaving != "" || m.Unschedulable && !m.cordonedByUs() && !m.Joining
	m.unavailable = m.unavailableAlone || m.Unschedulable || m.hasSlot() || m.usesDisruption()
	m.reachable = !m.Silent && (m.Ready || m.answered && m.publishesWanted())
	m.timedOut = !m.turn.Permitted.IsZero() && n.Seen.Permitted >= p.Timeout
	m.failed = m.failureMessage()
}

// lostPermission reports whether a drained node was permitted something that is no longer on it: its agent may be at work
// all the same. Others cannot keep a slot so for longer than a turn may take.
func (m *nodeState) lostPermission() bool {
	t, slot := m.State.Turn, m.State.Slot
	inSlot := slot.Held && t.Begun.Equal(slot.Taken) && t.Impact.Rank() >= bundle.ImpactDrain.Rank()
	return m.Published == "" && inSlot && m.Seen.Permitted < m.policy.Timeout && !m.Joining
}

// neededImpact returns the larger of what the bundles differ in and what the agent reports. What is not known is taken
// for none: then the agent is asked by a publication that permits nothing more. A node that has its slot is drained for
// what it was: it is not given back, only to be drained again when the cost is known.
func (m *nodeState) neededImpact() bundle.Impact {
	need := m.Cost
	switch {
	case need == "" && m.hasSlot():
		need = bundle.ImpactDrain
	case need == "":
		need = bundle.ImpactNone
	}
	// What has drifted is there whatever is wanted: a node in its turn is not given back for a change that comes in
	// that time.
	drifted := m.hasSlot() && m.Report.State == published.StateNeedsPermission && m.Report.Applied == m.Published
	if m.answered && (m.publishesWanted() || drifted) {
		switch m.Report.State { //nolint:exhaustive // the others need nothing
		case published.StateNeedsPermission:
			need = largerImpact(need, m.Report.Impact)
		case published.StateRebootPending:
			need = bundle.ImpactReboot
		}
	}
	if need.Rank() > bundle.ImpactReboot.Rank() {
		return bundle.ImpactReboot // of a newer agent, or damaged: more than that there is not
	}
	return need
}

// agentFinished reports whether the agent, by its report, does nothing more about the published bundle.
func (m *nodeState) agentFinished() bool {
	if m.bootOutstanding() {
		return false
	}
	switch m.Report.State {
	case published.StateApplied, published.StateRolledBack:
		return true
	case published.StateNeedsPermission:
		return m.Report.Expired || m.Report.Impact.Rank() > m.Permitted.Rank()
	case published.StateRebootPending:
		return m.Permitted != bundle.ImpactReboot
	case published.StateFailed:
		return m.waitsForRoom() && m.isDisruptive()
	case published.StateUnpublished, published.StateApplying, published.StatePayloadMissing:
		return false
	}
	return false
}

// waitsForRoom reports whether the agent applies the published bundle when the disk of its host has room. That is no
// failure of the bundle, and the node is no canary that others wait for if there is another one.
func (m *nodeState) waitsForRoom() bool { return m.answered && m.Report.WaitsForRoom() }

// permissionExpired reports whether the agent does not use its permission, because that was too long ago.
func (m *nodeState) permissionExpired() bool {
	return m.answered && m.Report.State == published.StateNeedsPermission && m.Report.Expired
}

// usesDisruption reports whether a disruptive permission is in use.
func (m *nodeState) usesDisruption() bool { return m.isDisruptive() && !m.done }

// hasTimeLimit reports whether something is decided by how long ago the impact was permitted.
func (m *nodeState) hasTimeLimit() bool {
	away := !m.Ready && (m.hasSlot() || m.usesDisruption() || m.isUnconfirmed())
	return !m.turn.Permitted.IsZero() && (!m.done || away)
}

// isRestarting reports whether the node uses one of the slots for restarts: until its agent has ended, and until it is
// Ready again. A turn that takes too long counts as failed, and no other node waits for it.
func (m *nodeState) isRestarting() bool {
	if m.Published == "" || m.Permitted != bundle.ImpactRestart || m.Joining {
		return false
	}
	back := m.Ready || m.turn.Impact != bundle.ImpactRestart || m.Seen.Reported >= m.policy.Settle
	return !m.done && !m.timedOut || m.upToDate && !back
}

// isUnresponsive reports whether a permission is outstanding that the agent does not answer.
func (m *nodeState) isUnresponsive() bool {
	return m.Permitted == bundle.ImpactRestart && !m.answered && !m.hasSlot() && (m.timedOut || m.turn.IsZero())
}

// isUnconfirmed reports whether the node is a canary that has the bundle and has not been confirmed.
func (m *nodeState) isUnconfirmed() bool {
	return m.upToDate && m.turn.Canary && m.turn.Confirmed.IsZero()
}

// soakedFor returns for how long a canary has had time to become healthy. One that is Ready has it from when the end of
// its turn was written: the operator may have been away when that was.
func (m *nodeState) soakedFor() time.Duration {
	switch {
	case !m.turn.Ended.IsZero():
		return m.Seen.Ended
	case m.Ready:
		return 0
	}
	return m.Seen.Permitted
}

// hasSoaked reports whether the node works with the bundle, and has for long enough. What has no impact needs no time.
func (m *nodeState) hasSoaked() bool {
	switch {
	case !m.upToDate:
		return false
	case m.turn.Impact == bundle.ImpactNone:
		return true
	case !m.isHealthy() || m.hasSlot() || m.turn.Canary && m.turn.Ended.IsZero():
		return false
	}
	return m.soakTimeLeft() <= 0
}

// isHealthy reports whether the node is Ready and nothing is known that does not work on it.
func (m *nodeState) isHealthy() bool {
	return m.Ready && m.Unsettled == "" && len(m.Report.Crashed) == 0
}

// soakTimeLeft returns the time until the node will have soaked, if nothing happens.
func (m *nodeState) soakTimeLeft() time.Duration {
	if m.turn.Ended.IsZero() {
		return m.policy.Settle - m.Seen.Ready
	}
	return m.policy.Settle - min(m.Seen.Ended, m.Seen.Ready)
}

// provesBundle reports whether the node proves that its bundle works.
func (m *nodeState) provesBundle() bool {
	return m.upToDate && (!m.turn.Confirmed.IsZero() || !m.turn.Canary && m.hasSoaked())
}

// isPostponed reports whether the node waits because its drain did not end in time.
func (m *nodeState) isPostponed() bool {
	return !m.State.Postponed.IsZero() && m.Seen.Postponed < m.policy.Timeout
}

// previousTurn returns the turn that the node has behind it, with its end as far as it is known.
func (m *nodeState) previousTurn() Turn {
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

// agentMayBeAtWork reports whether the agent may be using what it was permitted.
func (m *nodeState) agentMayBeAtWork() bool { return m.usesDisruption() || m.isRestarting() }

// failureRule is a rule whose result is why the node counts as failed; empty if it does not.
type failureRule = rule[*nodeState, func(*nodeState) string]

// failureRules say why a node counts as failed. A node that does not answer does not: it may be off.
func failureRules() []failureRule {
	return []failureRule{
		{"a node that is leaving, paused, joining or without a bundle does not count as failed",
			func(m *nodeState) bool { return m.Leaving != "" || m.Paused || m.Joining || m.Wanted == "" }, neverFails},
		{"a bundle that was rolled back before counts as failed until a retry is requested",
			func(m *nodeState) bool {
				return m.State.Failed == m.Wanted && m.State.FailedRetry == retryDigest(m.Retry)
			},
			func(*nodeState) string { return "rolled back" }},
		{"a node that has another bundle published has not failed",
			func(m *nodeState) bool { return !m.publishesWanted() }, neverFails},
		{"a full disk is no failure of the bundle", (*nodeState).waitsForRoom, neverFails},
		{"a node that rolled the bundle back has failed",
			func(m *nodeState) bool { return m.answered && m.Report.State == published.StateRolledBack },
			func(m *nodeState) string { return joinMessage("rolled back", m.Report.Message) }},
		{"a failure that does not heal, or lasts longer than an update, counts as failed",
			func(m *nodeState) bool {
				return m.answered && m.Report.State == published.StateFailed && (m.timedOut || !m.Report.Heals())
			},
			func(m *nodeState) string { return cmp.Or(m.Report.Message, "the bundle cannot be applied") }},
		{"a node that answered or holds a slot has failed when its update timed out",
			func(m *nodeState) bool {
				return m.timedOut && !m.done && (m.answered || m.mayBeDisrupted()) && !m.bootOutstanding()
			},
			func(m *nodeState) string {
				return "not finished within " + formatLimit(m.policy.Timeout) + ", the limit rollout.nodeTimeout"
			}},
		{"a disrupted node that has the bundle has failed when it is not Ready in time",
			func(m *nodeState) bool {
				return m.timedOut && m.upToDate && m.mayBeDisrupted() && !m.Ready && !m.bootOutstanding()
			},
			func(m *nodeState) string {
				return "not Ready within " + formatLimit(m.policy.Timeout) + ", the limit rollout.nodeTimeout"
			}},
		{"a canary has failed when a service crashed after the change",
			func(m *nodeState) bool {
				return m.isUnconfirmed() && m.turn.Impact != bundle.ImpactNone && len(m.Report.Crashed) > 0
			},
			func(m *nodeState) string {
				return "crashed after the change: " + joinFirst(m.Report.Crashed)
			}},
		{"a canary has failed when it is not healthy in time",
			func(m *nodeState) bool {
				return m.isUnconfirmed() && !m.hasSoaked() && m.soakedFor() > m.policy.Settle+m.policy.Timeout
			},
			func(m *nodeState) string { return joinMessage("not settled after the update", m.Unsettled) }},
		{"any other node has not failed", nil, neverFails},
	}
}

func neverFails(*nodeState) string { return "" }

// failureMessage returns why the node counts as failed; empty if it does not.
func (m *nodeState) failureMessage() string { return firstRule(failureTable, m).result(m) }

var failureTable = failureRules() //nolint:gochecknoglobals // a table

// failedForHost reports whether the node failed, and reports that its host alone is why.
func (m *nodeState) failedForHost() bool {
	return m.failed != "" && m.answered && m.publishesWanted() && m.Report.BlamesHost()
}

// mayBeDisrupted reports whether the node has a slot, or an agent that uses what it was permitted with one.
func (m *nodeState) mayBeDisrupted() bool { return m.hasSlot() || m.usesDisruption() }

// failureLog returns the end of the log of the service because of which the published bundle was rolled back.
func (m *nodeState) failureLog() bundle.LogTail {
	if !m.answered {
		return bundle.LogTail{}
	}
	return m.Report.Log
}

// fixCommand returns what to do about a node that failed.
func (m *nodeState) fixCommand() string {
	fix := "correct the inputs"
	if m.answered {
		fix = cmp.Or(m.Report.Fix(m.Name), fix)
	}
	return fix + "; to leave the node out: wmco pause " + m.Name
}

// canaryKind is what a canary stands for.
type canaryKind struct {
	group  Group
	target bundle.Digest
}

func (n *Node) canaryKind() canaryKind { return canaryKind{n.Group, n.Target} }

// compareStarts orders nodes by when they start.
func compareStarts(a, b *nodeState) int {
	return cmp.Or(cmp.Compare(a.startOrder(), b.startOrder()), strings.Compare(a.Name, b.Name))
}

// startOrder is that of starts: nodes that are unavailable already cost nothing more.
func (m *nodeState) startOrder() int {
	switch {
	case m.hasSlot():
		return 0
	case m.unavailableAlone:
		return 1
	}
	return 2
}

func (m *nodeState) needsDrain() bool               { return m.need.Rank() >= bundle.ImpactDrain.Rank() }
func (m *nodeState) isUnconfirmedReservation() bool { return m.hasSlot() && !m.State.Slot.Held }
