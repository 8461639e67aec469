package configure

import (
	"errors"
	"strings"
	"testing"

	"wmco/layout"
)

// TestARemovalByForceSaysWhatStaysOnTheHost, so that the host is not taken for a clean one.
func TestARemovalByForceSaysWhatStaysOnTheHost(t *testing.T) {
	p := RemovedByForce("192.0.2.1", errors.New("the host is off"))
	text := p.DisplayText()
	for _, part := range append(layout.ServiceNames(), "192.0.2.1", "was not cleaned up", `C:\k`, "the host is off", "; fix: ") {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %s", part, text)
		}
	}
	if !p.Finished || p.State != StateGone || p.Err == nil {
		t.Errorf("%+v", p)
	}
}
