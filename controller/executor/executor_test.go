package executor

import (
	"testing"
	"time"

	"wmco/bundle"
	"wmco/controller/rollout"
)

// TestStepsThatTakeANodeAway: before the pods are gone, a place can be taken and held.
func TestStepsThatTakeANodeAway(t *testing.T) {
	claimed := rollout.State{Claim: rollout.Claim{Taken: time.Unix(1, 0)}}
	for _, tt := range []struct {
		name                string
		step                rollout.Step
		disruptive, drastic bool
	}{
		{"a place is taken", rollout.Step{Action: rollout.ActionReserve, State: claimed}, true, false},
		{"a place is held", rollout.Step{Action: rollout.ActionConfirmReservation, State: claimed}, true, false},
		{"a drained node may boot", rollout.Step{Action: rollout.ActionPublish, Permit: bundle.ImpactReboot, State: claimed}, true, true},
		{"a drained node may change", rollout.Step{Action: rollout.ActionPermit, Permit: bundle.ImpactDrain, State: claimed}, true, true},
		{"a joining node", rollout.Step{Action: rollout.ActionPublish, Permit: bundle.ImpactReboot}, false, false},
		{"services restart", rollout.Step{Action: rollout.ActionPublish, Permit: bundle.ImpactRestart}, false, false},
		{"a node is drained", rollout.Step{Action: rollout.ActionDrain, State: claimed}, false, false},
		{"a place is given back", rollout.Step{Action: rollout.ActionRelease, Permit: bundle.ImpactRestart}, false, false},
	} {
		if isDisruptive(tt.step) != tt.disruptive || isDrastic(tt.step) != tt.drastic {
			t.Errorf("%s: disruptive %v, drastic %v", tt.name, isDisruptive(tt.step), isDrastic(tt.step))
		}
	}
}
