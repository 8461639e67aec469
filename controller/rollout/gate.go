package rollout

import (
	"cmp"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/published"
)

// kind is what a canary stands for.
type kind struct {
	group  Group
	target bundle.Digest
}

func (n Node) kind() kind { return kind{n.Group, n.Target} }

// gate lets canaries pass before the others of their kind.
type gate struct {
	// confirmed is the number of nodes that prove the bundle, wanted how many must.
	confirmed, wanted int
	// canaries are the names of those that may pass meanwhile.
	canaries []string
}

func (g gate) open() bool { return g.confirmed >= g.wanted }

func (g gate) allows(name string) bool { return g.open() || slices.Contains(g.canaries, name) }

// gates returns the gates of all kinds.
func (p *planner) gates() map[kind]gate {
	all := map[kind]gate{}
	candidates := map[kind][]*member{}
	for i := range p.members {
		m := &p.members[i]
		k := m.kind()
		g := all[k]
		g.wanted = p.policy.Canaries
		if m.confirmed(p.policy) {
			g.confirmed++
		}
		all[k] = g
		if m.candidate() {
			candidates[k] = append(candidates[k], m)
		}
	}
	for k, list := range candidates {
		g := all[k]
		slices.SortFunc(list, func(a, b *member) int {
			return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(b.need.Rank(), a.need.Rank()), strings.Compare(a.Name, b.Name))
		})
		for _, m := range list[:min(len(list), max(0, g.wanted-g.confirmed))] {
			g.canaries = append(g.canaries, m.Name)
		}
		all[k] = g
	}
	return all
}

// candidate reports whether the node can be, or is, a canary.
func (m *member) candidate() bool {
	return m.Wanted != "" && (!m.current || m.unconfirmed()) && m.failed == "" &&
		!m.Paused && !m.Joining && m.Leaving == "" && m.Foreign == ""
}

// rank orders candidates: those that have begun, then those that are drained already, then the node on which the change before went
// wrong, then any that works. A node whose drain does not end, whose disk is full, or that is off, comes last: it proves nothing.
func (m *member) rank() int {
	switch {
	case m.waitsForRoom():
		return 4
	case !m.State.Postponed.IsZero() && !m.working() && m.reachable:
		return 4
	case m.Published == m.Wanted && (m.answered || m.Ready && !m.lost() && !m.Silent):
		return 0
	case !m.reachable:
		return 5
	case !m.State.Claim.IsZero() && m.Ready:
		return 1
	case m.awayAlone || m.PayloadPending:
		return 4
	case m.Report.State == published.StateRolledBack || m.State.Failed != "":
		return 2
	}
	return 3
}

// halted says why no node is started; empty if nothing keeps the rollout.
func (p *planner) halted() string {
	var failed []string
	canary := ""
	for i := range p.members {
		m := &p.members[i]
		if m.failed == "" {
			continue
		}
		failed = append(failed, m.Name+" ("+m.failed+")")
		isCanary := canary == "" && !p.gate[m.kind()].open()
		if isCanary {
			canary = failed[len(failed)-1]
		}
		if isCanary || p.fix == "" {
			p.fix = m.fix()
		}
	}
	switch {
	case canary != "":
		return "stopped: the canary " + canary
	case len(failed) >= p.policy.FailureLimit:
		return "stopped: " + bundle.Count(len(failed), "node") + " failed: " + some(failed)
	}
	return ""
}

// some joins the first few of a list for people.
func some(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:most], ", ") + ", and " + bundle.Count(len(list)-most, "other")
}
