package gather

import (
	"fmt"
	"testing"

	"wmco/bundle"
	"wmco/bundle/reason"
)

// TestANameThatWindowsReservesIsLeftOutAlone: a host may say that it is called con. Nothing is refused to the others for it, and a name that leaves its
// folder is no name of an object of a cluster.
func TestANameThatWindowsReservesIsLeftOutAlone(t *testing.T) {
	for name, want := range map[string]bundle.Severity{"con": bundle.SeverityWarning, "nul.example.com": bundle.SeverityWarning, "../x": bundle.SeverityError, "win-a": ""} {
		r := gatherFrom(t, Options{}, object("", "Node", "", name, fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{"kubernetes.io/os":"windows"}}}`, name)))
		var got bundle.Severity
		for _, f := range r.Findings {
			if f.Node == name && (f.Reason == reason.NodeNameReserved || f.Reason == reason.InputInvalid) {
				got = f.Severity
			}
		}
		if got != want || (len(r.Nodes) == 1) != (want == "") {
			t.Errorf("%s: %q, want %q; %d nodes", name, got, want, len(r.Nodes))
		}
	}
}
