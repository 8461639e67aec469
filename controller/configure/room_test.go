package configure

import (
	"strings"
	"testing"

	"wmco/applier/protocol"
	"wmco/controller/hosts"
)

// TestAHostWithoutRoomIsNoWrongInput: the fix is what helps.
func TestAHostWithoutRoomIsNoWrongInput(t *testing.T) {
	for _, r := range []protocol.Result{protocol.ResultRolledBack, protocol.ResultPartial} {
		for full, want := range map[bool]string{true: "free space on drive C:", false: map[protocol.Result]string{protocol.ResultRolledBack: "fix the inputs", protocol.ResultPartial: "it is retried"}[r]} {
			p := Host{}.progressOfOutcome(hosts.Outcome{Event: protocol.Event{Result: r, Message: "x", DiskFull: full}})
			if p.State != StateFailed || !strings.Contains(p.Fix, want) || full && strings.Contains(p.Fix, "inputs") {
				t.Errorf("%s, disk full %t: %+v", r, full, p)
			}
		}
	}
}
