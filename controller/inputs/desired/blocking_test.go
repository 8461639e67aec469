package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/render"
)

func TestWhatHoldsUpAllNodes(t *testing.T) {
	for name, c := range map[string]struct {
		finding bundle.Finding
		blocks  bool
	}{
		"an error about the cluster":             {bundle.Finding{Severity: bundle.SeverityError, Reason: reason.HybridOverlayMissing}, true},
		"a cluster of another version":           {bundle.Finding{Severity: bundle.SeverityWarning, Reason: reason.ClusterVersionUnsupported}, false},
		"a Machine whose name cannot be used":    {bundle.Finding{Severity: bundle.SeverityError, Reason: reason.InputInvalid, Node: "nul"}, false},
		"an entry of windows-instances is wrong": {bundle.Finding{Severity: bundle.SeverityWarning, Reason: reason.InstanceInvalid, Node: "10.0.0.5"}, false},
	} {
		if got := len(BlockingFindings(bundle.Findings{c.finding})) > 0; got != c.blocks {
			t.Errorf("%s: blocks: %t", name, got)
		}
	}
}

// TestWhatConcernsAHost: an error about the cluster, or about the host itself, by its name or address. Another host may choose its name.
func TestWhatConcernsAHost(t *testing.T) {
	of := func(node string) bundle.Finding {
		return bundle.Finding{Severity: bundle.SeverityError, Reason: reason.InputInvalid, Node: node}
	}
	h := &Hosts{Findings: bundle.Findings{of(""), of("nul"), of("win-a"), of("10.0.0.5")}}
	got := h.FindingsFor(render.Node{Name: "win-a", Address: "10.0.0.5"})
	if diff := cmp.Diff(bundle.Findings{of(""), of("win-a"), of("10.0.0.5")}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
