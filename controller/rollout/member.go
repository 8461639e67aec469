package rollout

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// member is a node with what follows from it alone.
type member struct {
	Node
	// turn is about the published bundle; zero if the operator did not note it.
	turn Turn
	// need is the impact of the node's way to Wanted.
	need bundle.Impact
	// current is true if the node has Wanted.
	current bool
	// answered is true if the report is about the published bundle, done if the agent does nothing more about it as it is permitted.
	answered, done bool
	// away is true for a node that is unavailable, awayAlone if it is without what a rollout does to it.
	away, awayAlone bool
	// reachable is true if something on the node can be expected to act.
	reachable bool
	// late is true if the turn takes longer than it may.
	late bool
	// failed says why the node counts as failed; empty if it does not.
	failed string
}

func judge(n Node, p Policy) member {
	m := member{Node: n}
	if n.State.Turn.Bundle == n.Published {
		m.turn = n.State.Turn
	}
	m.answered = n.Published != "" && n.Report.State != "" && n.Report.Desired == n.Published
	m.current = n.Wanted != "" && n.Published == n.Wanted && m.answered && n.Report.State == published.StateApplied
	m.need = m.needs()
	m.done = m.answered && m.ended()
	m.awayAlone = !n.Ready || n.Leaving != "" || n.Unschedulable && !n.cordonedByUs() && !n.Joining
	m.away = m.awayAlone || n.Unschedulable || !n.State.Claim.IsZero() || m.drastic() && !m.done
	m.reachable = !n.Silent && (n.Ready || m.answered && n.Published == n.Wanted)
	m.late = !m.turn.Permitted.IsZero() && n.Seen.Permitted >= p.Timeout
	m.failed = m.failure(p)
	return m
}

// needs returns the larger of what the bundles differ in and what the agent reports. What is not known is taken for none: then the
// agent is asked by a publication that permits nothing more.
func (m *member) needs() bundle.Impact {
	need := m.Cost
	if need == "" {
		need = bundle.ImpactNone
	}
	// What has drifted is there whatever is wanted: a node in its turn is not given back for a change that comes meanwhile.
	drifted := !m.State.Claim.IsZero() && m.Report.State == published.StateNeedsPermission && m.Report.Applied == m.Published
	if m.answered && (m.Published == m.Wanted || drifted) {
		switch m.Report.State { //nolint:exhaustive // the others need nothing
		case published.StateNeedsPermission:
			need = larger(need, m.Report.Impact)
		case published.StateRebootPending:
			need = bundle.ImpactReboot
		}
	}
	if need.Rank() > bundle.ImpactReboot.Rank() {
		return bundle.ImpactReboot // of a newer agent, or damaged: more than that there is not
	}
	return need
}

func larger(a, b bundle.Impact) bundle.Impact {
	if b.Rank() > a.Rank() {
		return b
	}
	return a
}

// ended reports whether the agent, as it says, does nothing more about the published bundle.
func (m *member) ended() bool {
	switch m.Report.State {
	case published.StateApplied, published.StateRolledBack:
		return true
	case published.StateNeedsPermission:
		return m.Report.Expired || m.Report.Impact.Rank() > m.Permitted.Rank()
	case published.StateRebootPending:
		return m.Permitted != bundle.ImpactReboot
	case published.StateFailed:
		return m.waitsForRoom() && m.drastic()
	case published.StateUnpublished, published.StateApplying, published.StatePayloadMissing:
		return false
	}
	return false
}

// expired reports whether the agent does not use its permission, because that was too long ago.
func (m *member) expired() bool {
	return m.answered && m.Report.State == published.StateNeedsPermission && m.Report.Expired
}

// drastic reports whether something is permitted that needs a drained node.
func (m *member) drastic() bool {
	return m.Published != "" && (m.Permitted == bundle.ImpactDrain || m.Permitted == bundle.ImpactReboot)
}

// working reports whether a drastic permission is in use.
func (m *member) working() bool { return m.drastic() && !m.done }

// unbegun reports whether a drastic permission is not used, because the node was paused before its agent began: it does not begin now. The
// time of a turn is long enough for one that began at the last moment to say so.
func (m *member) unbegun() bool { return m.Paused && m.working() && !m.answered && m.late }

// isTimed reports whether something is decided by how long ago the impact was permitted.
func (m *member) isTimed() bool {
	away := !m.Ready && (!m.State.Claim.IsZero() || m.working() || m.unconfirmed())
	return !m.turn.Permitted.IsZero() && (!m.done || away)
}

// restarting reports whether the node holds one of the places for restarts: until its agent has ended, and until it is Ready
// again. A turn that takes too long counts as failed, and keeps nobody else.
func (m *member) restarting(p Policy) bool {
	if m.Published == "" || m.Permitted != bundle.ImpactRestart || m.Joining {
		return false
	}
	back := m.Ready || m.turn.Impact != bundle.ImpactRestart || m.Seen.Reported >= p.Settle
	return !m.done && !m.late || m.current && !back
}

// lost reports whether a permission is outstanding that the agent does not answer.
func (m *member) lost() bool {
	return m.Permitted == bundle.ImpactRestart && !m.answered && m.State.Claim.IsZero() && (m.late || m.turn.IsZero())
}

// failure says why the node counts as failed. A node that does not answer does not: it may be off. Neither does one that is about to go,
// or that an administrator has paused.
func (m *member) failure(p Policy) string {
	if m.Leaving != "" || m.Paused || m.Joining || m.Wanted == "" {
		return ""
	}
	if m.State.Failed == m.Wanted && m.State.FailedRetry == retryOf(m.Retry) {
		return "it was rolled back"
	}
	if m.Published != m.Wanted {
		return ""
	}
	held := !m.State.Claim.IsZero() || m.working()
	switch {
	case m.waitsForRoom():
		return "" // its disk says nothing about the bundle
	case m.answered && m.Report.State == published.StateRolledBack:
		return describe("rolled back", m.Report.Message)
	case m.answered && m.Report.State == published.StateFailed && (m.late || !m.Report.Heals()):
		return describe("failed", m.Report.Message)
	case m.late && !m.done && (m.answered || held):
		return fmt.Sprintf("not done after %s", p.Timeout)
	case m.late && m.current && held && !m.Ready:
		return fmt.Sprintf("not Ready %s after it was permitted", p.Timeout)
	case m.unconfirmed() && m.turn.Impact != bundle.ImpactNone && len(m.Report.Crashed) > 0:
		return bundle.Count(len(m.Report.Crashed), "service") + " ended after the change: " + some(m.Report.Crashed)
	case m.unconfirmed() && !m.settled(p) && m.settling() > p.Settle+p.Timeout:
		return describe("not settled after its turn", m.Unsettled)
	}
	return ""
}

// fix says what to do about a node that failed.
func (m *member) fix() string {
	const pause = ", or pause the node with the annotation " + published.PausedAnnotation
	fix := m.Report.Fix(m.Name)
	switch {
	case fix == "" || !m.answered:
		return "correct the inputs" + pause
	case m.Report.BlamesInput() && m.Report.Fault != published.FaultAPI:
		return "correct the inputs" + pause + "; the same bundle is tried again after: " + published.RetryCommand(m.Name)
	}
	return fix + pause
}

func describe(what, message string) string {
	if message == "" || strings.HasPrefix(message, what) {
		return cmp.Or(message, what)
	}
	return what + ": " + message
}

// unconfirmed reports whether the node is a canary that has the bundle and has not been confirmed.
func (m *member) unconfirmed() bool {
	return m.current && m.turn.Canary && m.turn.Confirmed.IsZero()
}

// settling returns for how long a canary has had time to settle. One that is Ready has it from when the end of its turn was written: the operator
// may have been away when that was.
func (m *member) settling() time.Duration {
	switch {
	case !m.turn.Ended.IsZero():
		return m.Seen.Ended
	case m.Ready:
		return 0
	}
	return m.Seen.Permitted
}

// settled reports whether the node works with the bundle, and has for long enough. What has no impact needs no time.
func (m *member) settled(p Policy) bool {
	switch {
	case !m.current:
		return false
	case m.turn.Impact == bundle.ImpactNone:
		return true
	case !m.Ready || m.Unsettled != "" || len(m.Report.Crashed) > 0 || !m.State.Claim.IsZero() || m.turn.Canary && m.turn.Ended.IsZero():
		return false
	}
	return m.settlesIn(p) <= 0
}

// settlesIn returns the time until the node will have settled, if nothing happens.
func (m *member) settlesIn(p Policy) time.Duration {
	if m.turn.Ended.IsZero() {
		return p.Settle - m.Seen.Ready
	}
	return p.Settle - min(m.Seen.Ended, m.Seen.Ready)
}

// confirmed reports whether the node proves that its bundle works.
func (m *member) confirmed(p Policy) bool {
	return m.current && (!m.turn.Confirmed.IsZero() || !m.turn.Canary && m.settled(p))
}

// postponed reports whether the node waits because its drain did not end in time.
func (m *member) postponed(p Policy) bool {
	return !m.State.Postponed.IsZero() && m.Seen.Postponed < p.Timeout
}

// asked reports whether a person asks for another try of the turn that has failed, by another value of the annotation.
func (m *member) asked() bool {
	return m.failed != "" && m.Retry != "" && m.Published == m.Wanted && !m.turn.IsZero() && m.turn.Retry != retryOf(m.Retry)
}
