package render

import (
	"slices"
	"testing"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// TestANodeWhoseNetworksAreNotKnown is not rendered as one without networks: its published bundle stays.
func TestANodeWhoseNetworksAreNotKnown(t *testing.T) {
	none := func(f *bundle.Facts) { f.Networks, f.Endpoints = nil, nil }
	for _, tt := range []struct {
		name    string
		edit    func(*bundle.Facts)
		unknown bool
		want    string
		refused bool
	}{
		{"they were known before", func(*bundle.Facts) {}, true, "", false},
		{"they were never known", none, true, reason.NetworksUnknown, true},
		{"the address of the endpoint was never known", func(f *bundle.Facts) { f.Endpoints = nil }, true, reason.NetworksUnknown, true},
		{"there are none yet", none, false, reason.NetworkPending, false},
	} {
		n := testNode()
		if tt.edit(&n.Facts); tt.unknown {
			n.Facts = n.Facts.AddUnknown(bundle.UnknownFact{Part: bundle.PartNetworks, Error: "it has not answered within 30s"})
		}
		b, findings, err := Render(Inputs{Cluster: testCluster(bundle.PlatformNone), Node: n}, Options{})
		if err != nil || findings.Refused() != tt.refused {
			t.Errorf("%s: %v, %+v", tt.name, err, findings)
		}
		if tt.want != "" && !slices.ContainsFunc(findings, func(f bundle.Finding) bool { return f.Reason == tt.want }) {
			t.Errorf("%s: no %s in %+v", tt.name, tt.want, findings)
		}
		if tt.refused != (b.Digest == "") {
			t.Errorf("%s: bundle %q", tt.name, b.Digest)
		}
	}
	// The host has no Node yet: its bundle needs no network.
	n := testNode()
	n.Subnet, n.Name = "", ""
	none(&n.Facts)
	n.Facts = n.Facts.AddUnknown(bundle.UnknownFact{Part: bundle.PartNetworks, Error: "it has not answered within 30s"})
	if _, findings, err := Render(Inputs{Cluster: testCluster(bundle.PlatformNone), Node: n}, Options{}); err != nil || findings.Refused() {
		t.Errorf("a host that joins: %v, %+v", err, findings)
	}
}
