package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

// TestWindowsDoesNotBootByItself where the operator coordinates boots, on nodes whose agents know of policies.
func TestWindowsDoesNotBootByItself(t *testing.T) {
	want := []bundle.Policy{{Name: bundle.PolicyUpdates, Value: bundle.UpdatesNotInstalled, Impact: bundle.ImpactNone}}
	for name, c := range map[string]struct {
		mode   WindowsRebootMode
		change func(*Node)
		want   []bundle.Policy
	}{
		"the operator only reports":       {mode: WindowsRebootsReport},
		"boots are ignored":               {mode: WindowsRebootsIgnore},
		"the operator coordinates":        {mode: WindowsRebootsCoordinate, want: want},
		"the agent reads no policies":     {mode: WindowsRebootsCoordinate, change: func(n *Node) { n.NoPolicies = true }},
		"the agent is older still":        {mode: WindowsRebootsCoordinate, change: func(n *Node) { n.OlderAgent = true }},
		"the host joins: it has no boots": {mode: WindowsRebootsCoordinate, change: func(n *Node) { n.Name = "" }},
	} {
		cluster := testCluster(bundle.PlatformNone)
		cluster.Settings.WindowsReboots = c.mode
		fleet, findings, err := NewFleet(cluster, Options{})
		if err != nil || fleet == nil {
			t.Fatalf("%v %+v", err, findings)
		}
		n := testNode()
		if c.change != nil {
			c.change(&n)
		}
		b, findings, err := fleet.Node(n)
		if err != nil || findings.Refused() {
			t.Fatalf("%s: %v %+v", name, err, findings)
		}
		if diff := cmp.Diff(c.want, b.Node.Policies); diff != "" || len(b.Cluster.Policies) > 0 {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
