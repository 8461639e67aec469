package plan

import "testing"

// TestWhatForbidsADrainIsNoted on the Node, and pods that are only ending are not: each would be a write.
func TestWhatForbidsADrainIsNoted(t *testing.T) {
	const blocked = "blocked: pod shop/db-0 by PodDisruptionBudget shop/db"
	for _, tt := range []struct {
		forbidden  bool
		text, want string
	}{{true, blocked, blocked}, {false, "waiting for the end of shop/web-0", ""}, {false, "", ""}} {
		n := node("a", wants(drain), claim(1, true), func(n *Node) {
			n.State.Slot.Blocked, n.DrainBlocked, n.DrainForbidden = "earlier", tt.text, tt.forbidden
		})
		got := stamped(Fleet{Nodes: []Node{n}, Policy: policy(), Now: noon()})
		if len(got.Steps) != 1 || got.Steps[0].Action != ActionDrain || got.Steps[0].State.Slot.Blocked != tt.want || got.Nodes[0].DrainBlocked != tt.text {
			t.Errorf("%q: %+v, %+v", tt.text, got.Steps, got.Nodes)
		}
	}
}
