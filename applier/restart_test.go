package applier_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
)

// TestARepairRestartsServicesThatAreNamed although nothing differs. One that the bundle does not have is none.
func TestARepairRestartsServicesThatAreNamed(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.mustApply(t, newNode())
	starts := func() map[string]int {
		count := map[string]int{}
		for _, e := range m.events {
			if e.Action != nil && e.Action.Verb == protocol.VerbStart {
				count[string(e.Action.Entry)]++
			}
		}
		return count
	}
	m.events = nil
	o, err := m.engine().Repair(t.Context(), applier.Options{Restart: []string{"kubelet", "sshd"}, MaxImpact: bundle.ImpactRestart})
	if err != nil || o.Result != protocol.ResultApplied || o.Restarted == 0 {
		t.Fatalf("%+v, %v", o.Event, err)
	}
	if diff := cmp.Diff(map[string]int{string(bundle.KindService.ID("kubelet")): 1}, starts()); diff != "" {
		t.Errorf("services that were started (-want +got):\n%s", diff)
	}
	if o, err := m.repair(t.Context()); err != nil || o.Result != protocol.ResultSame {
		t.Errorf("a repair after it: %+v, %v", o.Event, err)
	}
	o, err = m.engine().Repair(t.Context(), applier.Options{Restart: []string{"kubelet"}, MaxImpact: bundle.ImpactNone})
	if err == nil || o.Result != protocol.ResultRefused {
		t.Errorf("more than is permitted: %+v, %v", o.Event, err)
	}
}
