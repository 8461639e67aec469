package desired

import (
	"testing"

	"wmco/bundle"
	"wmco/render/reason"
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
