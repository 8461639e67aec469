package plan

import (
	"cmp"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/published"
)

// canaryGates returns the gates of all kinds.
func (p *planner) canaryGates() map[canaryKind]canaryGate {
	all := map[canaryKind]canaryGate{}
	for _, m := range p.nodes {
		k := m.canaryKind()
		g := all[k]
		g.wanted = p.policy.Canaries
		g.confirmed += boolToInt(m.provesBundle())
		all[k] = g
	}
	first := map[canaryKind][]candidate{}
	for _, m := range p.nodes {
		k := m.canaryKind()
		if left := all[k].wanted - all[k].confirmed; left > 0 && m.isCanaryCandidate() {
			first[k] = insertCandidate(first[k], candidate{m, m.canaryRank()}, left)
		}
	}
	for k, list := range first {
		g := all[k]
		for _, c := range list {
			g.canaries = append(g.canaries, c.Name)
		}
		all[k] = g
	}
	return all
}

// candidate is a node that can be a canary, with its rank.
type candidate struct {
	*nodeState
	rank int
}

// insertCandidate returns the first candidates, at most as many as are wanted, in the order in which they are chosen.
func insertCandidate(first []candidate, c candidate, wanted int) []candidate {
	at, _ := slices.BinarySearchFunc(first, c, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.need.Rank(), a.need.Rank()),
			strings.Compare(a.Name, b.Name))
	})
	if at == wanted {
		return first
	}
	first = slices.Insert(first, at, c)
	return first[:min(len(first), wanted)]
}

// isCanaryCandidate reports whether the node can be, or is, a canary.
func (m *nodeState) isCanaryCandidate() bool {
	unproven := m.Wanted != "" && (!m.upToDate || m.isUnconfirmed()) && m.failed == ""
	return unproven && !m.Paused && !m.Joining && m.Leaving == "" && m.Foreign == ""
}

// canaryRule is a rule whose result is the rank of a candidate: the lowest go first.
type canaryRule = rule[*nodeState, int]

// canaryRules rank the candidates. A node whose drain does not end, whose disk is full, or that is off, comes last: it
// proves nothing.
func canaryRules() []canaryRule {
	return []canaryRule{
		{"a node whose disk is full is no canary that others wait for", (*nodeState).waitsForRoom, 4},
		{"a node whose drain did not end is no canary that others wait for",
			func(m *nodeState) bool { return !m.State.Postponed.IsZero() && !m.usesDisruption() && m.reachable }, 4},
		{"a canary that has begun stays the canary",
			func(m *nodeState) bool {
				return m.publishesWanted() && (m.answered || m.Ready && !m.isUnresponsive() && !m.Silent)
			},
			0},
		{"of nodes that do not respond, the one with the bundle stays the canary",
			func(m *nodeState) bool { return !m.reachable && m.publishesWanted() }, 5},
		{"a node that does not respond is the last choice", func(m *nodeState) bool { return !m.reachable }, 6},
		// Not a slot that was taken for a boot alone: the node would give it back to be the canary, and take it again.
		{"a Ready node with a slot is chosen before one without",
			func(m *nodeState) bool { return m.hasSlot() && m.Ready && (m.needsDrain() || !m.bootAsked()) }, 1},
		{"a node that is unavailable or awaits executables is no canary that others wait for",
			func(m *nodeState) bool { return m.unavailableAlone || m.PayloadPending }, 4},
		{"the node on which the last change failed is chosen before the others",
			func(m *nodeState) bool { return m.Report.State == published.StateRolledBack || m.State.Failed != "" }, 2},
		{"any node that works can be the canary", nil, 3},
	}
}

// canaryRank orders candidates.
func (m *nodeState) canaryRank() int { return firstRule(canaryTable, m).result }

var canaryTable = canaryRules() //nolint:gochecknoglobals // a table

// stopReason returns why no node is started; empty if nothing keeps the rollout. A canary that failed for a fault of its
// host alone proves nothing about the bundle: another one is the canary. The first node that failed so does not count
// towards the limit; a second one may be the bundle all the same.
func (p *planner) stopReason() string {
	var failed, names []string
	canary, cause, hosts := "", "", 0
	for _, m := range p.nodes {
		if m.failed == "" {
			continue
		}
		failed, names = append(failed, m.Name+" ("+m.failed+")"), append(names, m.Name)
		hosts += boolToInt(m.failedForHost())
		isCanary := canary == "" && !p.gate[m.canaryKind()].isOpen() && !m.failedForHost()
		if isCanary {
			canary, cause = m.Name, m.failed
		}
		if isCanary || p.fix == "" {
			p.fix, p.log = m.fixCommand(), m.failureLog()
		}
	}
	if len(failed) > 0 {
		what := "stopped: " + bundle.Count(len(failed), "node") + " failed: "
		p.failures, p.stoppedBy = what+joinFirst(failed), what+joinFirst(names)
	}
	switch {
	case canary != "":
		p.stoppedBy = "stopped: canary " + canary + " failed"
		return p.stoppedBy + " (" + cause + ")"
	case len(failed)-min(hosts, 1) >= p.policy.FailureLimit:
		return p.failures
	}
	return ""
}
