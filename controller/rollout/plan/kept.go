package plan

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Kept decides as NextSteps does, and keeps what it found out about each node: a node that is as it was at the call before is not evaluated and
// not decided again, unless what its decision depended on in the fleet has changed. The zero value has seen no fleet. It is not for use by several
// goroutines.
//
//	Fleet --sameNode, sameLimits--> nodes that changed are evaluated --> canaries, failures, slots are counted over all
//	                                                                     each node in the order of starts: is what its outcome consulted the same?
//	                                                                       yes: what was said of it is said again     no: it is decided
type Kept struct {
	policy Policy
	rules  ruleTables
	nodes  map[string]*keptNode
	// order are the nodes in the order of starts, states the same as the planner needs them; both are reused.
	order  []*keptNode
	states []*nodeState
	gates  map[canaryKind]canaryGate
	fleet  fleetFacts
	// version rises when what every decision depends on is another one, call with each call.
	version, call uint64
}

// keptNode is a node with what was decided about it.
type keptNode struct {
	nodeState
	decided outcome
	// call is the last one that had the node.
	call uint64
}

// outcome is what was said of a node for which no step was made, and what of the fleet that depended on.
type outcome struct {
	isKept bool
	status Status
	held   []Held
	uses   consulted
	// version is that of Kept, gate that of the gate of the node's kind.
	version, gate uint64
	// unavailable, restarting and text are compared if they were consulted.
	unavailable, restarting int
	text                    string
}

// fleetFacts are what every decision depends on, beside the gate of its kind.
type fleetFacts struct {
	stopped         string
	limit           int
	reservationsFit bool
	toCancel        string
	// waitsRestart, waitsDrain and waitsReboot are true while no window for such a change is open.
	waitsRestart, waitsDrain, waitsReboot bool
	// windowsBoots are the nodes whose boots for Windows have not proved well.
	windowsBoots string
}

// consulted are the parts of a fleet that a decision has looked at.
type consulted struct {
	// slots is the number of nodes that are unavailable, restarts that of nodes that restart, text the names of the unavailable ones, clock the time.
	slots, restarts, text, clock bool
}

// NextSteps returns what the function of this name returns for the fleet.
func (k *Kept) NextSteps(f Fleet) Plan {
	p := k.newPlanner(f)
	p.plan.Nodes = slices.Grow(p.plan.Nodes, len(k.order))
	for _, n := range k.order {
		if !n.decided.holdsFor(p, &n.nodeState, k.version) {
			k.decideNode(p, n)
			continue
		}
		p.plan.Nodes = append(p.plan.Nodes, n.decided.status)
		p.plan.Fleet.Urgent = append(p.plan.Fleet.Urgent, n.decided.held...)
	}
	slices.SortFunc(p.plan.Nodes, func(a, b Status) int { return strings.Compare(a.Node, b.Node) })
	p.plan.Fleet = p.summarizeFleet()
	return p.plan
}

// Forget makes the next call evaluate and decide everything.
func (k *Kept) Forget() { *k = Kept{} }

// newPlanner evaluates the nodes that have changed. What follows from all nodes together is counted again: that is a few numbers.
func (k *Kept) newPlanner(f Fleet) *planner {
	f.Policy.Closed = f.Policy.Closed.toUTC() // times of a zone that is read again are other values
	if k.nodes == nil || k.policy != f.Policy {
		*k = Kept{policy: f.Policy, rules: newRuleTables(), nodes: make(map[string]*keptNode, len(f.Nodes)), version: k.version + 1, call: k.call}
	}
	k.call++
	p := &planner{policy: f.Policy, now: f.Now.UTC().Truncate(time.Second), limit: f.Policy.unavailableLimit(len(f.Nodes)), rules: k.rules}
	k.states = k.states[:0]
	for i := range f.Nodes {
		m := k.evaluateNode(&f.Nodes[i])
		k.states = append(k.states, m)
		p.unavailable += boolToInt(m.unavailable)
		p.restarting += boolToInt(m.isRestarting())
	}
	p.nodes = k.states
	k.removeOthers(len(f.Nodes))
	p.gate = p.canaryGates()
	k.numberGates(p.gate)
	p.stopped = p.stopReason()
	p.countReservations()
	p.countWindowsBoots()
	closed := p.policy.Closed
	k.compareFleet(fleetFacts{
		stopped: p.stopped, limit: p.limit, reservationsFit: p.reservationsFit, toCancel: strings.Join(p.toCancel, " "),
		waitsRestart: p.now.Before(closed.Restart), waitsDrain: p.now.Before(closed.Drain), waitsReboot: p.now.Before(closed.Reboot),
		windowsBoots: p.listWindowsBoots(),
	})
	slices.SortFunc(k.order, func(a, b *keptNode) int { return compareStarts(&a.nodeState, &b.nodeState) })
	for i, n := range k.order {
		p.nodes[i] = &n.nodeState
	}
	return p
}

// evaluateNode returns what follows from a node, which is found out again only if something about the node has changed.
func (k *Kept) evaluateNode(n *Node) *nodeState {
	kept := k.nodes[n.Name]
	if kept == nil {
		kept = &keptNode{}
		k.nodes[n.Name] = kept
		k.order = append(k.order, kept)
	} else if sameNode(&kept.Node, n) && sameLimits(kept.Seen, n.Seen, &k.policy) {
		kept.Seen, kept.call = n.Seen, k.call
		return &kept.nodeState
	}
	kept.nodeState, kept.decided, kept.call = nodeState{}, outcome{}, k.call
	kept.nodeState.evaluateNode(n, &k.policy)
	return &kept.nodeState
}

// removeOthers forgets the nodes that this call does not have.
func (k *Kept) removeOthers(left int) {
	if len(k.nodes) == left {
		return
	}
	maps.DeleteFunc(k.nodes, func(_ string, n *keptNode) bool { return n.call != k.call })
	k.order = slices.DeleteFunc(k.order, func(n *keptNode) bool { return n.call != k.call })
}

// numberGates gives each gate the version of the call before if it lets the same nodes pass, and a new one otherwise.
func (k *Kept) numberGates(now map[canaryKind]canaryGate) {
	for kind, g := range now {
		before, known := k.gates[kind]
		if g.version = before.version; !known || g.isOpen() != before.isOpen() || !slices.Equal(g.canaries, before.canaries) {
			g.version = k.call
		}
		now[kind] = g
	}
	k.gates = now
}

func (k *Kept) compareFleet(now fleetFacts) {
	if k.fleet != now {
		k.fleet = now
		k.version++
	}
}

// decideNode decides about one node, and keeps what was said if nothing is to be done and time does not change it.
func (k *Kept) decideNode(p *planner, n *keptNode) {
	p.uses = consulted{}
	steps, nodes, held, unavailable, restarting := len(p.plan.Steps), len(p.plan.Nodes), len(p.plan.Fleet.Urgent), p.unavailable, p.restarting
	p.decideNode(&n.nodeState)
	n.decided = outcome{}
	if len(p.plan.Steps) > steps || len(p.plan.Nodes) != nodes+1 || p.uses.clock || n.awaitsTime() {
		return
	}
	n.decided = outcome{
		isKept: true, status: p.plan.Nodes[nodes], held: slices.Clone(p.plan.Fleet.Urgent[held:]), uses: p.uses,
		version: k.version, gate: p.gate[n.canaryKind()].version, unavailable: unavailable, restarting: restarting, text: p.unavailableText,
	}
}

// awaitsTime reports whether a limit of time is pending for the node, which the plan has to wake for.
func (m *nodeState) awaitsTime() bool {
	return slices.ContainsFunc(m.pendingTimers(), func(left time.Duration) bool { return left > 0 })
}

// holdsFor reports whether a decision would be the same.
func (o *outcome) holdsFor(p *planner, m *nodeState, version uint64) bool {
	return o.isKept && o.version == version && o.gate == p.gate[m.canaryKind()].version && (!o.uses.slots || o.unavailable == p.unavailable) &&
		(!o.uses.restarts || o.restarting == p.restarting) && (!o.uses.text || o.text == p.describeUnavailable())
}

// sameLimits reports whether the same limits of time have passed, and whether no time has begun again.
func sameLimits(before, now Seen, p *Policy) bool {
	whole := p.Settle + p.Timeout
	same := func(before, now time.Duration, limits ...time.Duration) bool {
		for _, limit := range limits {
			if (before >= limit) != (now >= limit) || (before > limit) != (now > limit) {
				return false
			}
		}
		return now >= before
	}
	return same(before.Permitted, now.Permitted, p.Timeout, whole) && same(before.Ended, now.Ended, p.Settle, whole) &&
		same(before.Taken, now.Taken, p.Timeout) && same(before.Postponed, now.Postponed, p.Timeout) &&
		same(before.Ready, now.Ready, p.Settle) && same(before.Reported, now.Reported, p.Settle) &&
		same(before.Booted, now.Booted, p.Settle, restAfterBoot)
}

// Same reports whether two plans are the same.
func (p Plan) Same(other Plan) bool { return reflect.DeepEqual(p, other) }
