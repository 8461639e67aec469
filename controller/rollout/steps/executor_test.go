package steps

import (
	"testing"
	"time"

	"wmco/bundle"
	"wmco/controller/rollout/plan"
)

// TestStepsThatTakeANodeAway: before the pods are gone, a place can be taken and held.
func TestStepsThatTakeANodeAway(t *testing.T) {
	claimed := plan.State{Slot: plan.Slot{Taken: time.Unix(1, 0)}}
	for _, tt := range []struct {
		name                string
		step                plan.Step
		disruptive, drastic bool
	}{
		{"a place is taken", plan.Step{Action: plan.ActionReserve, State: claimed}, true, false},
		{"a place is held", plan.Step{Action: plan.ActionConfirmReservation, State: claimed}, true, false},
		{"a drained node may boot", plan.Step{Action: plan.ActionPublish, Permit: bundle.ImpactReboot, State: claimed}, true, true},
		{"a drained node may change", plan.Step{Action: plan.ActionPermit, Permit: bundle.ImpactDrain, State: claimed}, true, true},
		{"a joining node", plan.Step{Action: plan.ActionPublish, Permit: bundle.ImpactReboot}, false, false},
		{"services restart", plan.Step{Action: plan.ActionPublish, Permit: bundle.ImpactRestart}, false, false},
		{"a node is drained", plan.Step{Action: plan.ActionDrain, State: claimed}, false, false},
		{"a place is given back", plan.Step{Action: plan.ActionRelease, Permit: bundle.ImpactRestart}, false, false},
	} {
		if isDisruptive(tt.step) != tt.disruptive || needsEmptyNode(tt.step) != tt.drastic {
			t.Errorf("%s: disruptive %v, drastic %v", tt.name, isDisruptive(tt.step), needsEmptyNode(tt.step))
		}
	}
}
