package plan

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/published"
)

// ruleCase is a fleet in which a rule decides about its first node, named a, and what it decides.
type ruleCase struct {
	rule   string
	nodes  []Node
	want   string
	policy func(*Policy)
}

// checkRules expects that each rule of a table decides about the node of its case, and that no rule is without a case. A rule that is taken out, or
// that another one comes before, has no case any more in which it decides.
func checkRules[S, R any](t *testing.T, rules []rule[S, R], subject func(decision) S, outcome func(decision, R) string, cases []ruleCase) {
	t.Helper()
	for _, r := range rules {
		if !slices.ContainsFunc(cases, func(c ruleCase) bool { return c.rule == r.name }) {
			t.Errorf("no case is about the rule %q", r.name)
		}
	}
	for _, c := range cases {
		d := decide(c)
		first := firstRule(rules, subject(d))
		if first.name != c.rule {
			t.Errorf("%q decides, want %q", first.name, c.rule)
			continue
		}
		if got := outcome(d, first.result); got != c.want {
			t.Errorf("%s: %q, want %q", c.rule, got, c.want)
		}
	}
}

// decide returns the decision about the first node of a case.
func decide(c ruleCase) decision {
	f := Fleet{Nodes: c.nodes, Policy: policy(), Now: noon()}
	if c.policy != nil {
		c.policy(&f.Policy)
	}
	p := newPlanner(ElapsedByStamps(f))
	i := slices.IndexFunc(p.nodes, func(m *nodeState) bool { return m.Name == c.nodes[0].Name })
	return p.newDecision(p.nodes[i])
}

// checkNodeRules is checkRules for rules that make a step, or say what the node waits for.
func checkNodeRules(t *testing.T, rules []nodeRule, cases []ruleCase) {
	t.Helper()
	checkRules(t, rules, func(d decision) decision { return d }, func(d decision, result func(decision)) string {
		result(d)
		if steps := d.fleet.plan.Steps; len(steps) == 1 && len(d.fleet.plan.Nodes) == 1 {
			return strings.TrimPrefix(steps[0].text(), d.Name+" ")
		}
		if nodes := d.fleet.plan.Nodes; len(nodes) == 1 {
			return string(nodes[0].Reason)
		}
		return ""
	}, cases)
}

// one is a fleet of a node a.
func one(edits ...edit) []Node { return []Node{node("a", edits...)} }

// proven is a node a beside one that proves bundle 2, so that a need not be a canary.
func proven(edits ...edit) []Node { return []Node{node("a", edits...), node("z-done", done)} }

func notReady(n *Node)    { n.Ready, n.ReadySince = false, ago(500) }
func paused(n *Node)      { n.Paused = true }
func leavingSoon(n *Node) { n.Leaving = "its Machine is being deleted" }
func joining(n *Node)     { n.Joining, n.Unschedulable = true, true }
func cordoned(n *Node)    { n.Unschedulable, n.CordonedFor = true, published.CordonedForRollout }
func silent(n *Node)      { n.Silent = true }

// ended writes the end of the turn some minutes ago.
func ended(minutes int) edit { return func(n *Node) { n.State.Turn.Ended = ago(minutes) } }

func TestNodeRules(t *testing.T) {
	checkNodeRules(t, nodeRules(), []ruleCase{
		{rule: "a node with annotations of a newer operator is left as it is", nodes: one(joining, wants(none), func(n *Node) { n.Foreign = "schema 2" }), want: "NewerOperator"},
		{rule: "a node that was told to end is told nothing else", nodes: one(joining, wants(none), (*Node).EndNode), want: "Leaving"},
		{rule: "a node that was told to end is told nothing else", nodes: one(claim(1, true), (*Node).EndNode), want: "Leaving"},
		{rule: "a joining node gets its bundle and every permission at once", nodes: one(joining, wants(none), claim(1, true)), want: "publish 2 reboot"},
		{rule: "a joining node gets its bundle and every permission at once", nodes: one(joining), want: "Joining"},
		{rule: "a requested retry gives a failed update its time again", nodes: one(wants(restart), given(restart, 9), reporting(rolledBack, ""), func(n *Node) { n.Retry = "again" }), want: "note"},
		{rule: "a permission that others replaced is signed again", nodes: one(bootPermitted(5), replaced), want: "permit 1 reboot"},
		{rule: "a boot that a person or Windows asks for has a slot of its own", nodes: one(asksBoot), want: "take cordon on scale-down on"},
		{rule: "a node that has a slot, or something left of one, continues its update", nodes: one(claim(1, true)), want: "release cordon off scale-down off"},
		{rule: "a node that has a slot, or something left of one, continues its update", nodes: one(cordoned), want: "release cordon off"},
		{rule: "a node that has a slot, or something left of one, continues its update", nodes: one(func(n *Node) { n.Permitted = drain }), want: "release 1 restart"},
		{rule: "a node that is up to date is done, unless it is a canary that soaks", nodes: one(done), want: "Updated"},
		{rule: "any other node is started", nodes: proven(wants(none)), want: "publish 2 none"},
	})
}

func TestUpToDateRules(t *testing.T) {
	kept := func(n *Node) { n.PayloadKept = true }
	checkNodeRules(t, upToDateRules(), []ruleCase{
		{rule: "a node whose executables were kept waits for the newer ones", nodes: one(done, kept), want: "PayloadPending"},
		{rule: "a node that is no unconfirmed canary is done", nodes: one(done), want: "Updated"},
		{rule: "a canary that has soaked is confirmed", nodes: one(done, canary, ended(2), kept), want: "confirm"},
		{rule: "a canary that failed is not confirmed", nodes: one(done, canary, ended(40), func(n *Node) { n.Unsettled = "kubelet crashes" }), want: "Failed"},
		{rule: "the end of a canary's update is written before it soaks", nodes: one(done, canary), want: "release"},
		{rule: "a canary that is not Ready does not soak", nodes: one(done, canary, notReady), want: "Settling"},
		{rule: "a canary with pods that are not healthy does not soak", nodes: one(done, canary, ended(5), func(n *Node) { n.Unsettled = "3 pods are not Ready" }), want: "Settling"},
		{rule: "any other canary soaks", nodes: one(done, canary, ended(1)), want: "Settling"},
	})
}

func TestStartRules(t *testing.T) {
	full := faults(failing, published.FaultDisk)
	one := func(p *Policy) { p.MaxParallel = 1 }
	unanswered := func(n *Node) { n.Report = published.Report{} }
	checkNodeRules(t, startRules(), []ruleCase{
		{rule: "a permission that the node agent does not answer is revoked", nodes: proven(wants(restart), given(restart, 31), unanswered), want: "permit 2 none"},
		{rule: "a node whose disk is full waits for room without a permission", nodes: proven(wants(restart), given(restart, 1), full), want: "permit 2 none"},
		{rule: "a node whose disk is full waits for room without a permission", nodes: proven(wants(restart), given(none, 1), full), want: "WaitingForRoom"},
		{rule: "a node agent that works on the wanted bundle is waited for", nodes: proven(wants(restart), given(restart, 1), reporting(applying, "")), want: "Applying"},
		{rule: "a blocked node gets only urgent changes", nodes: proven(wants(restart), paused), want: "Paused"},
		{rule: "a blocked node gets only urgent changes", nodes: proven(wants(restart), given(none, 1), reporting(asks, restart), paused, urgent(none)), want: "publish 3 none"},
		{rule: "a node agent that restarts services for the bundle before is waited for", nodes: proven(reporting(applying, ""), wants(restart), func(n *Node) { n.State.Turn.Permitted = ago(1) }), want: "Applying"},
		{rule: "a node that does not respond gets the wanted bundle without a permission", nodes: proven(wants(reboot), notReady), want: "publish 2 none"},
		{rule: "a node that does not respond is waited for", nodes: proven(wants(reboot), given(none, 1), reporting(asks, reboot), silent), want: "Unreachable"},
		{rule: "a change without impact is published at once", nodes: proven(wants("")), want: "publish 2 none"},
		{rule: "a node whose disk was full is not drained before its agent reports room", nodes: proven(full, wants(drain)), want: "publish 2 none"},
		{rule: "a node that was told nothing gets the list of its executables before it is drained", nodes: proven(wants(drain), func(n *Node) { n.Published, n.Permitted, n.PayloadPending = "", "", true }), want: "publish 2 none"},
		{rule: "services restart on at most maxParallel nodes", nodes: proven(wants(restart)), want: "publish 2 restart"},
		{rule: "services restart on at most maxParallel nodes", policy: one, nodes: append(proven(wants(restart)), node("b", wants(restart), given(restart, 1), reporting(applying, ""))), want: "WaitingForParallel"},
		{rule: "a drain or a reboot begins with a slot among the unavailable nodes", nodes: proven(wants(drain)), want: "take cordon on scale-down on"},
		{rule: "a drain or a reboot begins with a slot among the unavailable nodes", nodes: append(proven(wants(reboot)), node("b", notReady)), want: "WaitingForAvailability"},
	})
}

func TestSlotRules(t *testing.T) {
	checkNodeRules(t, slotRules(), []ruleCase{
		{rule: "a paused node whose node agent does not begin releases its slot", nodes: proven(drained, given(reboot, 40), paused), want: "release 2 restart cordon off scale-down off"},
		{rule: "a paused node whose node agent does not begin releases its slot", nodes: proven(drained, given(reboot, 40), reporting(failing, ""), paused), want: "release 2 restart cordon off scale-down off"},
		{rule: "a paused node whose node agent does not begin releases its slot", nodes: proven(drained, given(reboot, 40), reporting(asks, drain), paused), want: "release 2 restart cordon off scale-down off"},
		{rule: "a drained node whose disk is full releases its slot", nodes: proven(drained, given(reboot, 1), faults(failing, published.FaultDisk)), want: "release 2 restart cordon off scale-down off"},
		{rule: "a node agent that uses a disruptive permission is waited for", nodes: proven(drained, given(reboot, 5), paused), want: "Applying"},
		{rule: "a node agent that uses a disruptive permission is waited for", nodes: proven(drained, given(reboot, 1), reporting(published.StateRebootPending, "")), want: "Applying"},
		{rule: "a node agent that uses a disruptive permission is waited for", nodes: proven(drained, given(reboot, 40), reporting(published.StateRebootPending, ""), paused), want: "Applying"},
		{rule: "a node agent that uses a disruptive permission is waited for", nodes: proven(drained, given(reboot, 40), reporting(applying, ""), paused), want: "Applying"},
		{rule: "a node agent that uses a disruptive permission is waited for", nodes: proven(drained, given(reboot, 5), reporting(failing, ""), paused), want: "Applying"},
		{rule: "a node that needs its slot goes on with its drain", nodes: proven(drained), want: "publish 2 reboot"},
		{rule: "a node that needs its slot goes on with its drain", want: "publish 3 drain", nodes: proven(drained, given(reboot, 1), reporting(applying, ""), func(n *Node) {
			n.Wanted, n.Cost = digest(3, "a"), restart
		})},
		{rule: "a node that needs its slot goes on with its drain", nodes: proven(drained, wants("")), want: "publish 2 drain"},
		{rule: "a node that needs its slot goes on with its drain", nodes: proven(drained, wants(""), func(n *Node) { n.Drained = false }), want: "drain"},
		{rule: "a node that does not need its slot releases it", nodes: proven(wants(restart), claim(1, true)), want: "release cordon off scale-down off"},
		{rule: "a node that does not need its slot releases it", nodes: proven(drained, paused), want: "release cordon off scale-down off"},
		{rule: "a node that has the bundle keeps its slot until it is Ready", nodes: proven(drained, given(reboot, 5), reporting(applied, ""), notReady), want: "Applying"},
	})
}

func TestDrainRules(t *testing.T) {
	undrained := func(n *Node) { n.Drained = false }
	late := node("b", wants(drain), claim(1, false))
	checkNodeRules(t, drainRules(), []ruleCase{
		{rule: "a reservation is confirmed when all reservations fit", nodes: proven(wants(drain), claim(1, false)), want: "hold"},
		{rule: "a reservation is confirmed when all reservations fit", nodes: append(proven(wants(drain), claim(1, false), notReady), late), want: "hold"},
		{rule: "the latest reservation that does not fit is canceled", nodes: append(proven(wants(drain), claim(0, false)), late), want: "withdraw cordon off scale-down off"},
		{rule: "a reservation that is not confirmed waits for a later one to be canceled", nodes: append(proven(wants(drain), claim(2, false)), late), want: "WaitingForAvailability"},
		{rule: "a drain that does not end in time is postponed", nodes: proven(wants(drain), claim(30, true)), want: "release cordon off scale-down off"},
		{rule: "a node with a confirmed slot is cordoned and drained", nodes: proven(drained, undrained), want: "drain"},
		{rule: "a node with a confirmed slot is cordoned and drained", nodes: proven(drained, func(n *Node) { n.Unschedulable = false }), want: "drain cordon on"},
		{rule: "a drained node gets the wanted bundle and the permission", nodes: proven(drained, claim(99, true)), want: "publish 2 reboot"},
	})
}

func TestBlockerRules(t *testing.T) {
	subject := func(d decision) decision { return d }
	message := func(d decision, b blocker) string {
		return strings.TrimPrefix(string(b.reason)+": "+b.message(d), ": ")
	}
	rollback := []edit{wants(restart), given(restart, 1), reporting(rolledBack, "")}
	checkRules(t, blockerRules(), subject, message, []ruleCase{
		{rule: "a node without a bundle does not start", nodes: one(paused, func(n *Node) { n.Wanted = "" }), want: "NoBundle: no new bundle is rendered"},
		{rule: "a node that failed does not start again", nodes: one(rollback...), want: "Failed: rolled back: no luck"},
		{rule: "a node that is leaving does not start", nodes: one(leavingSoon, paused), want: "Leaving: its Machine is being deleted"},
		{rule: "a paused node does not start", nodes: one(paused), want: "Paused: the node is paused"},
		{rule: "a paused rollout starts no node", nodes: one(wants(none)), policy: func(p *Policy) { p.Paused = true }, want: "Paused: the rollout is paused"},
		{rule: "a rollout that failures stopped starts no node", nodes: []Node{node("a", wants(restart)), node("b", append(rollback, canary)...)}, want: "Stopped: stopped: canary b failed"},
		{rule: "a node whose drain did not end in time starts later", want: "DrainBlocked: the drain did not end in time; it is retried at 2026-01-01T12:10:00Z", nodes: one(wants(drain), func(n *Node) {
			n.State.Postponed, n.PayloadPending = noon().Add(10*60e9), true
		})},
		{rule: "a node starts when its executables are on the host", nodes: one(wants(drain), func(n *Node) { n.PayloadPending = true }), want: "PayloadPending: executables are being copied to the host"},
		{rule: "a node starts while a window for its change is open", nodes: one(wants(drain)), policy: func(p *Policy) { p.Closed.Drain = noon().Add(60 * 60e9) }, want: "WaitingForWindow: waiting for a maintenance window (rollout.windows, impact drain); the next one opens at 2026-01-01T13:00:00Z"},
		{rule: "a node starts after the canaries of its kind", nodes: []Node{node("b", wants(none)), node("a", wants(none))}, want: "WaitingForCanary: waiting for canary a"},
		{rule: "nothing else keeps a node from starting", nodes: proven(wants(none)), want: ""},
	})
}

func TestUrgentRules(t *testing.T) {
	// What a node waits for is in blocked when the table is read.
	blocked := func(d decision) decision { return d }
	step := func(d decision, result func(decision)) string {
		result(d)
		return string(d.fleet.plan.Nodes[0].Reason)
	}
	isWanted := func(n *Node) { n.Urgent.Bundle = n.Wanted }
	checkRules(t, urgentRules(), blocked, step, []ruleCase{
		{rule: "a node without anything urgent waits", nodes: one(wants(drain), paused), want: "Paused"},
		{rule: "an urgent bundle that is published already is waited for", want: "Paused", nodes: one(wants(drain), paused, urgent(none), func(n *Node) {
			n.Published, n.PublishedUrgent = n.Urgent.Bundle, true
		})},
		{rule: "an urgent bundle that restarts something waits for a slot", nodes: one(wants(drain), paused, urgent(restart)), want: "Paused"},
		{rule: "a node without a bundle gets nothing urgent", nodes: one(urgent(none), func(n *Node) { n.Wanted = "" }), want: "NoBundle"},
		{rule: "a node that is leaving gets nothing urgent", nodes: one(wants(drain), urgent(none), leavingSoon), want: "Leaving"},
		{rule: "a change without impact follows its canary soon enough", nodes: []Node{node("b", wants(none), urgent(none)), node("a", wants(none))}, want: "WaitingForCanary"},
		{rule: "a bundle that failed is not published because it is urgent", want: "Stopped", nodes: []Node{
			node("a", wants(restart), urgent(none), isWanted), node("b", wants(restart), given(restart, 1), reporting(rolledBack, ""), canary),
		}},
		{rule: "a node agent that may be restarting services is not interrupted", nodes: one(reporting(applying, ""), wants(restart), urgent(none), paused, func(n *Node) { n.State.Turn.Permitted = ago(1) }), want: "Paused"},
		{rule: "anything else that is urgent is published at once", nodes: one(wants(drain), paused, urgent(none)), want: "Step"},
	})
}

func TestAlertRules(t *testing.T) {
	alerts := func(d decision, result func(decision)) string {
		result(d)
		var all []string
		for _, h := range d.fleet.plan.Fleet.Urgent {
			all = append(all, strings.TrimPrefix(h.Message, clientCA().Text))
		}
		return strings.Join(all, "\n")
	}
	isPublished := func(minutes int) edit {
		return func(n *Node) {
			n.Published, n.Permitted = n.Urgent.Bundle, none
			n.State.Turn = Turn{Bundle: n.Published, Impact: none, Begun: ago(minutes), Permitted: ago(minutes)}
		}
	}
	mixed := func(n *Node) { n.Urgent = Urgent{Mixed: "the pull secret"} }
	checkRules(t, alertRules(), func(d decision) decision { return d }, alerts, []ruleCase{
		{rule: "a node that is up to date or leaving raises no alert", nodes: one(done, paused, mixed), want: ""},
		{rule: "a node that is up to date or leaving raises no alert", nodes: one(wants(drain), leavingSoon, mixed), want: ""},
		{rule: "a node without anything urgent raises no alert", nodes: one(wants(drain), paused), want: ""},
		{rule: "a node without anything urgent raises no alert", nodes: one(wants(drain), paused, mixed), want: "the pull secret, which can be published only with other changes of the node: the node is paused"},
		{rule: "a full disk keeps urgent changes from the node", nodes: one(wants(none), urgent(none), isPublished(99), faults(failing, published.FaultDisk)), want: ": no luck"},
		{rule: "a node agent that has ended or timed out has not applied the urgent change", nodes: one(wants(drain), paused, urgent(none), isPublished(99)), want: ": not applied by the node agent"},
		{rule: "an urgent change that restarts something waits as long as the node is blocked", nodes: one(wants(drain), paused, urgent(restart)), want: " (impact restart): the node is paused"},
		{rule: "anything else that is urgent is on its way", nodes: one(wants(drain), paused, urgent(none)), want: ""},
	})
}

func TestFailureRules(t *testing.T) {
	crashed := func(n *Node) { n.Report.Crashed = []string{"kube-proxy"} }
	rolledBackBefore := func(n *Node) { n.State.Failed = n.Wanted }
	checkRules(t, failureRules(), func(d decision) *nodeState { return d.nodeState }, func(d decision, result func(*nodeState) string) string { return result(d.nodeState) }, []ruleCase{
		{rule: "a node that is leaving, paused, joining or without a bundle does not count as failed", nodes: one(wants(none), rolledBackBefore, paused), want: ""},
		{rule: "a node that is leaving, paused, joining or without a bundle does not count as failed", nodes: one(wants(none), rolledBackBefore, leavingSoon), want: ""},
		{rule: "a node that is leaving, paused, joining or without a bundle does not count as failed", nodes: one(wants(none), rolledBackBefore, joining), want: ""},
		{rule: "a bundle that was rolled back before counts as failed until a retry is requested", nodes: one(wants(none), rolledBackBefore), want: "rolled back"},
		{rule: "a node that has another bundle published has not failed", nodes: one(wants(none), rolledBackBefore, reporting(rolledBack, ""), func(n *Node) { n.Retry = "again" }), want: ""},
		{rule: "a full disk is no failure of the bundle", nodes: one(wants(none), given(none, 99), faults(failing, published.FaultDisk)), want: ""},
		{rule: "a node that rolled the bundle back has failed", nodes: one(wants(none), given(none, 1), reporting(rolledBack, "")), want: "rolled back: no luck"},
		{rule: "a failure that does not heal, or lasts longer than an update, counts as failed", nodes: one(wants(none), given(none, 1), reporting(failing, "")), want: "no luck"},
		{rule: "a failure that does not heal, or lasts longer than an update, counts as failed", nodes: one(wants(none), given(none, 31), faults(failing, published.FaultLayer)), want: "no luck"},
		{rule: "a node that answered or holds a slot has failed when its update timed out", nodes: one(wants(none), given(none, 31), reporting(applying, "")), want: "not finished within 30m, the limit rollout.nodeTimeout"},
		{rule: "a node that answered or holds a slot has failed when its update timed out", nodes: one(drained, given(reboot, 31)), want: "not finished within 30m, the limit rollout.nodeTimeout"},
		{rule: "a disrupted node that has the bundle has failed when it is not Ready in time", nodes: one(drained, given(reboot, 31), reporting(applied, ""), notReady), want: "not Ready within 30m, the limit rollout.nodeTimeout"},
		{rule: "a canary has failed when a service crashed after the change", nodes: one(done, canary, ended(1), crashed), want: "crashed after the change: kube-proxy"},
		{rule: "a canary has failed when it is not healthy in time", nodes: one(done, canary, ended(33), func(n *Node) { n.Unsettled = "kubelet crashes" }), want: "not settled after the update: kubelet crashes"},
		{rule: "any other node has not failed", nodes: one(wants(none), given(none, 31)), want: ""},                                               // it may be off
		{rule: "any other node has not failed", nodes: one(done, ended(1), crashed), want: ""},                                                    // it is no canary
		{rule: "any other node has not failed", nodes: one(wants(none), given(none, 1), reporting(applied, ""), canary, crashed), want: ""},       // the change restarted nothing
		{rule: "any other node has not failed", nodes: one(done, canary, ended(31), func(n *Node) { n.Unsettled = "kubelet crashes" }), want: ""}, // it may take two minutes longer than a turn
	})
}

func TestCanaryRules(t *testing.T) {
	postponed := func(n *Node) { n.State.Postponed = noon() }
	checkRules(t, canaryRules(), func(d decision) *nodeState { return d.nodeState }, func(_ decision, rank int) string { return strconv.Itoa(rank) }, []ruleCase{
		{rule: "a node whose disk is full is no canary that others wait for", nodes: one(wants(none), given(none, 1), faults(failing, published.FaultDisk)), want: "4"},
		{rule: "a node whose drain did not end is no canary that others wait for", nodes: one(wants(none), given(none, 1), reporting(applying, ""), postponed), want: "4"},
		{rule: "a canary that has begun stays the canary", nodes: one(wants(none), given(none, 1)), want: "0"},
		{rule: "a canary that has begun stays the canary", nodes: one(wants(none), given(none, 1), reporting(applying, ""), notReady), want: "0"},
		{rule: "of nodes that do not respond, the one with the bundle stays the canary", nodes: one(wants(none), given(none, 1), notReady), want: "5"},
		{rule: "a node that does not respond is the last choice", nodes: one(wants(none), silent, claim(1, true)), want: "6"},
		{rule: "a Ready node with a slot is chosen before one without", nodes: one(wants(bundle.ImpactDrain), claim(1, true)), want: "1"},
		{rule: "a node that is unavailable or awaits executables is no canary that others wait for", nodes: one(wants(none), func(n *Node) { n.Unschedulable = true }), want: "4"},
		{rule: "a node that is unavailable or awaits executables is no canary that others wait for", nodes: one(wants(none), func(n *Node) { n.PayloadPending = true }), want: "4"},
		{rule: "the node on which the last change failed is chosen before the others", nodes: one(wants(none), reporting(rolledBack, "")), want: "2"},
		{rule: "any node that works can be the canary", nodes: one(wants(none)), want: "3"},
	})
}

// TestCanceledReservations: of reservations that do not fit together the latest ones are canceled, and none that costs nothing more.
func TestCanceledReservations(t *testing.T) {
	open := func(name string, minutes int, edits ...edit) Node {
		return node(name, append([]edit{wants(drain), claim(minutes, false)}, edits...)...)
	}
	for name, tt := range map[string]struct {
		nodes []Node
		want  []string
	}{
		"all fit":                        {[]Node{open("a", 1)}, nil},
		"the later of two":               {[]Node{open("a", 1), open("b", 2)}, []string{"a"}},
		"the two later ones of three":    {[]Node{open("a", 1), open("b", 2), open("c", 3)}, []string{"a", "b"}},
		"of the same moment, by name":    {[]Node{open("a", 1), open("b", 1)}, []string{"b"}},
		"not that of one that is not up": {[]Node{open("a", 1, notReady), open("b", 2)}, []string{"b"}},
		"none that is confirmed":         {[]Node{node("a", wants(drain), claim(1, true)), open("b", 2)}, []string{"b"}},
	} {
		p := newPlanner(ElapsedByStamps(Fleet{Nodes: tt.nodes, Policy: policy(), Now: noon()}))
		if diff := cmp.Diff(tt.want, p.toCancel); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
