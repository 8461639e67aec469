package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle/nodestate"
	"wmco/controller/fleet"
	"wmco/controller/status"
)

// TestWorkOnTheHostOfANodeIsListed: alone where the node needs nothing, else after what it needs.
func TestWorkOnTheHostOfANodeIsListed(t *testing.T) {
	working := status.Host{Name: "win-1", Node: "win-1", State: nodestate.Updating, Reason: "RepairingAgent", Message: "repairing the node agent: connecting"}
	r := rendering{nodeWork: func(node string) (status.Host, bool) { return working, node == "win-1" }}
	silent := func(node, message string) status.Host {
		return status.Host{Name: node, Node: node, State: nodestate.NotReporting, Reason: "NotReporting", Message: message}
	}
	for name, c := range map[string]struct {
		row  fleet.Row
		want *status.Host
	}{
		"it needs nothing":       {fleet.Row{Node: "win-1", State: nodestate.Updated}, &working},
		"it needs something":     {fleet.Row{Node: "win-1", State: nodestate.NotReporting, Message: "no report"}, new(silent("win-1", "no report; repairing the node agent: connecting"))},
		"another node":           {fleet.Row{Node: "win-2", State: nodestate.Updated}, nil},
		"another that is silent": {fleet.Row{Node: "win-2", State: nodestate.NotReporting, Message: "no report"}, new(silent("win-2", "no report"))},
	} {
		t.Run(name, func(t *testing.T) {
			got, listed := r.listedHost(c.row)
			if listed != (c.want != nil) {
				t.Fatalf("listed: %t", listed)
			}
			if listed {
				if diff := cmp.Diff(*c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
