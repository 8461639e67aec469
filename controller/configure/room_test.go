package configure

import (
	"strings"
	"testing"

	"wmco/applier"
	"wmco/controller/hosts"
)

// TestAHostWithoutRoomIsNoWrongInput: the fix is what helps.
func TestAHostWithoutRoomIsNoWrongInput(t *testing.T) {
	for _, r := range []applier.Result{applier.ResultRolledBack, applier.ResultPartial} {
		for full, want := range map[bool]string{true: "free space on drive C:", false: map[applier.Result]string{applier.ResultRolledBack: "fix the inputs", applier.ResultPartial: "tried again"}[r]} {
			p := Host{}.progressOfOutcome(hosts.Outcome{Event: applier.Event{Result: r, Message: "x", DiskFull: full}})
			if p.State != StateFailed || !strings.Contains(p.Fix, want) || full && strings.Contains(p.Fix, "inputs") {
				t.Errorf("%s, disk full %t: %+v", r, full, p)
			}
		}
	}
}
