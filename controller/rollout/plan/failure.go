package plan

import (
	"fmt"

	"wmco/bundle"
	"wmco/bundle/published"
)

// failureRule is a rule whose result says why the node counts as failed; empty if it does not.
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
			func(*nodeState) string { return "it was rolled back" }},
		{"a node that has another bundle published has not failed",
			func(m *nodeState) bool { return !m.publishesWanted() }, neverFails},
		{"a full disk is no failure of the bundle", (*nodeState).waitsForRoom, neverFails},
		{"a node that rolled the bundle back has failed",
			func(m *nodeState) bool { return m.answered && m.Report.State == published.StateRolledBack },
			func(m *nodeState) string { return joinMessage("rolled back", m.Report.Message) }},
		{"a failure that does not heal, or lasts longer than a turn, counts as failed",
			func(m *nodeState) bool {
				return m.answered && m.Report.State == published.StateFailed && (m.timedOut || !m.Report.Heals())
			},
			func(m *nodeState) string { return joinMessage("failed", m.Report.Message) }},
		{"a node that answered or holds a slot has failed when its turn timed out",
			func(m *nodeState) bool {
				return m.timedOut && !m.done && (m.answered || m.mayBeDisrupted()) && !m.bootOutstanding()
			},
			func(m *nodeState) string { return fmt.Sprintf("not done after %s", m.policy.Timeout) }},
		{"a disrupted node that has the bundle has failed when it is not Ready in time",
			func(m *nodeState) bool {
				return m.timedOut && m.upToDate && m.mayBeDisrupted() && !m.Ready && !m.bootOutstanding()
			},
			func(m *nodeState) string {
				return fmt.Sprintf("not Ready %s after it was permitted", m.policy.Timeout)
			}},
		{"a canary has failed when a service crashed after the change",
			func(m *nodeState) bool {
				return m.isUnconfirmed() && m.turn.Impact != bundle.ImpactNone && len(m.Report.Crashed) > 0
			},
			func(m *nodeState) string {
				return bundle.Count(len(m.Report.Crashed), "service") + " ended after the change: " + joinFirst(m.Report.Crashed)
			}},
		{"a canary has failed when it is not healthy in time",
			func(m *nodeState) bool {
				return m.isUnconfirmed() && !m.hasSoaked() && m.soakedFor() > m.policy.Settle+m.policy.Timeout
			},
			func(m *nodeState) string { return joinMessage("not settled after its turn", m.Unsettled) }},
		{"any other node has not failed", nil, neverFails},
	}
}

func neverFails(*nodeState) string { return "" }

// failureMessage says why the node counts as failed; empty if it does not.
func (m *nodeState) failureMessage() string { return firstRule(failureTable, m).result(m) }

var failureTable = failureRules() //nolint:gochecknoglobals // a table

// failedForHost reports whether the node failed, and says that its host alone is why.
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

// fixCommand says what to do about a node that failed.
func (m *nodeState) fixCommand() string {
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
