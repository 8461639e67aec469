package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle/published"
)

// faults is a report about the published bundle with a fault.
func faults(s published.State, f published.Fault) edit {
	return func(n *Node) {
		reporting(s, "")(n)
		n.Report.Fault = f
	}
}

// TestWhoseFaultItIs: a full disk is no failure of a bundle, temporary faults are waited for, and the text about a stopped rollout names the fix.
func TestWhoseFaultItIs(t *testing.T) {
	full, damaged, locked := faults(failing, published.FaultDisk), faults(failing, published.FaultLayer), faults(rolledBack, published.FaultHost)
	open := node("z-done", done)
	const retry = `wmco retry a`
	for _, tt := range []struct {
		name  string
		nodes []Node
		want  []string
		line  string
	}{
		{"a canary without room gives its place back, and another node is the canary", []Node{node("a", wants(restart), given(restart, 1), full, canary), node("b", wants(restart))},
			[]string{"a permit 2 none canary", "b publish 2 restart canary"}, ""},
		{"it waits for room", []Node{node("a", wants(restart), given(none, 1), full, canary), node("b", wants(restart), given(restart, 1), reporting(applying, ""), canary)}, nil, "\na no luck"},
		{"also for longer than a turn may take", []Node{node("a", wants(restart), given(none, 99), full, canary), node("b", wants(restart), given(restart, 1), reporting(applying, ""), canary)}, nil, "0 of 2 nodes done, 1 in progress, 1 waiting"},
		{"a fleet without room is reported", []Node{node("a", wants(none), given(none, 99), full, canary), node("b", wants(none), given(none, 99), full)}, nil, "2 waiting; a: no luck"},
		{"a node without room stops no other", []Node{node("a", wants(restart), given(none, 99), full), node("b", wants(restart)), node("c", wants(restart), given(none, 99), full), open}, []string{"b publish 2 restart"}, ""},
		{"when there is room, it is permitted again", []Node{node("a", wants(restart), given(none, 99), reporting(asks, restart)), open}, []string{"a permit 2 restart"}, ""},
		{"a drained node without room is given back", []Node{node("a", drained, given(reboot, 1), full), node("b", wants(restart)), open}, []string{"a release 2 restart cordon off scale-down off", "b publish 2 restart"}, ""},
		{"also one whose turn takes too long", []Node{node("a", drained, given(reboot, 99), full), open}, []string{"a release 2 restart cordon off scale-down off"}, ""},
		{"then its permission to restart ends", []Node{node("a", wants(reboot), given(restart, 1), full), open}, []string{"a permit 2 none"}, ""},
		{"and it is not drained while it waits", []Node{node("a", wants(reboot), given(none, 1), full), open}, nil, "a no luck"},
		{"nor for another bundle, before its agent reports room", []Node{node("a", full, wants(drain)), open}, []string{"a publish 2 none"}, ""},
		{"a node without room that is paused", []Node{node("a", wants(none), given(none, 1), full, func(n *Node) { n.Paused = true }), open}, nil, "the node is paused"},
		{"an urgent input that has no room is told", []Node{node("a", wants(none), given(none, 1), full, with(urgent(none))), open}, nil, "urgent: no luck"},
		{"a damaged layer is waited for", []Node{node("a", wants(restart), given(restart, 1), damaged, canary), node("b", wants(restart))}, nil, "a: the node agent retries after: no luck; times out at"},
		{"for as long as a turn may take", []Node{node("a", wants(restart), given(restart, 31), damaged, canary), node("b", wants(restart))}, nil, "stopped: canary a failed (no luck); fix: none; the operator publishes the layer again"},
		{"an API server that does not answer is waited for", []Node{node("a", wants(restart), given(restart, 1), faults(failing, published.FaultAPI), canary), node("b", wants(restart))}, nil, "a: the node agent retries after: no luck"},
		{"a canary that its host keeps from the bundle proves nothing: another node is the canary", []Node{node("a", wants(restart), given(restart, 1), locked, canary), node("b", wants(restart)), node("c", wants(restart))},
			[]string{"b publish 2 restart canary"}, "\na rolled back: no luck"},
		{"one more than the limit stops the rollout and blames no input", []Node{node("a", wants(restart), given(restart, 1), locked, canary), node("b", wants(restart), given(restart, 1), locked, canary), node("c", wants(restart), given(restart, 1), locked, canary), node("d", wants(restart))}, nil,
			"stopped: 3 nodes failed: a (rolled back: no luck), b (rolled back: no luck), c (rolled back: no luck); fix: repair the host, then: " + retry + "; to leave the node out: wmco pause a"},
		{"so does a canary for which the bundle did not work", []Node{node("a", wants(restart), given(restart, 1), locked, canary), node("b", wants(restart), given(restart, 1), faults(rolledBack, published.FaultInput), canary), node("c", wants(restart))}, nil,
			"stopped: canary b failed (rolled back: no luck); fix: correct the inputs that caused this; the node applies the corrected bundle at once. To try the same bundle again: wmco retry b; to leave the node out: wmco pause b"},
		{"one that is no canary does not keep the others", []Node{node("a", wants(restart), given(restart, 1), locked), node("b", wants(restart)), open}, []string{"b publish 2 restart"}, ""},
		{"in the end it is what is left to do", []Node{node("a", wants(restart), given(restart, 1), locked), open}, nil,
			"1 of 2 nodes done, 1 failed; stopped: 1 node failed: a (rolled back: no luck); fix: repair the host, then: " + retry + "; to leave the node out: wmco pause a"},
		{"what a host refuses is waited for", []Node{node("a", wants(restart), given(restart, 1), faults(failing, published.FaultHost), canary), node("b", wants(restart))}, nil, "a: the node agent retries after: no luck; times out at"},
		{"for as long as a turn may take, and then another node is the canary", []Node{node("a", wants(restart), given(restart, 31), faults(failing, published.FaultHost), canary), node("b", wants(restart))},
			[]string{"b publish 2 restart canary"}, "\na no luck"},
		{"an agent that is too old for the bundle stops the rollout at once", []Node{node("a", wants(restart), given(restart, 1), faults(failing, published.FaultAgent), canary), node("b", wants(restart))}, nil,
			"stopped: canary a failed (no luck); fix: install the operator release in between"},
		{"inputs that do not work", []Node{node("a", wants(restart), given(restart, 1), faults(rolledBack, published.FaultInput), canary), node("b", wants(restart))}, nil,
			"; fix: correct the inputs that caused this; the node applies the corrected bundle at once. To try the same bundle again: " + retry + "; to leave the node out: wmco pause a"},
		{"a change after which the API server is away", []Node{node("a", wants(restart), given(restart, 1), faults(rolledBack, published.FaultAPI), canary), node("b", wants(restart))}, nil,
			"; fix: if the API server or the network was down: " + retry + ". Otherwise correct the inputs"},
	} {
		got := stamped(Fleet{Nodes: tt.nodes, Policy: policy(), Now: noon()})
		var steps []string
		for _, s := range got.Steps {
			steps = append(steps, s.text())
		}
		if diff := cmp.Diff(tt.want, steps); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", tt.name, diff, got.Fleet.Message)
		}
		all := got.Fleet.Message
		for _, n := range got.Nodes {
			all += "\n" + n.Node + " " + n.Message
		}
		for _, h := range got.Fleet.Urgent {
			all += "\nurgent" + strings.TrimPrefix(h.Message, clientCA().Text)
		}
		if !strings.Contains(all, tt.line) {
			t.Errorf("%s: %q is not in %s", tt.name, tt.line, all)
		}
	}
}
