package published

import (
	"strings"
	"testing"
)

// TestFixesNameWhatHelps: each state and fault has its own, and the inputs are named only where they can be the reason.
func TestFixesNameWhatHelps(t *testing.T) {
	const retry = `wmco retry win-a`
	for _, tt := range []struct {
		report Report
		want   string
		inputs bool
	}{
		{Report{State: StateFailed, Fault: FaultAPI}, "check the network, DNS, proxy and clock", false},
		{Report{State: StateFailed, Fault: FaultDisk}, "free space on drive C:", false},
		{Report{State: StateFailed, Fault: FaultLayer}, "the operator publishes the layer again", false},
		{Report{State: StateFailed, Fault: FaultInput}, "correct the inputs", true},
		{Report{State: StateFailed, Fault: FaultHost}, "repair the host; the node agent retries. To retry at once: " + retry, false},
		{Report{State: StateFailed, Fault: FaultAgent}, "copy a newer node agent with wmco apply --host; then: " + retry, false},
		{Report{State: StateFailed}, "the node agent retries", false},
		{Report{State: StateFailed, Fault: "another"}, "the node agent retries", false},
		{Report{State: StateFailed, Refused: "sha256:0"}, "the operator writes the annotation again", false},
		{Report{State: StateRolledBack, Fault: FaultAPI}, retry + ". Otherwise correct the inputs", true},
		{Report{State: StateRolledBack, Fault: FaultHost}, "repair the host, then: " + retry, false},
		{Report{State: StateRolledBack, Fault: FaultInput}, "the node applies the corrected bundle at once. To try the same bundle again: " + retry, true},
		{Report{State: StateRolledBack}, "the node applies the corrected bundle at once. To try the same bundle again: " + retry, true},
	} {
		got := tt.report.Fix("win-a")
		if !strings.Contains(got, tt.want) || strings.Contains(got, "inputs") != tt.inputs {
			t.Errorf("%s, fault %q: %q", tt.report.State, tt.report.Fault, got)
		}
	}
	for _, s := range States() {
		if fix := (Report{State: s}).Fix("win-a"); (fix != "") != (s == StateFailed || s == StateRolledBack) {
			t.Errorf("%s: %q", s, fix)
		}
	}
}

// TestAReportOfAnotherVersionHasNoFault: an older agent leaves the field empty, and a newer one may say what this program does not know.
func TestAReportOfAnotherVersionHasNoFault(t *testing.T) {
	for text, want := range map[string]Fault{
		`{"schema":1,"program":"x","state":"Failed"}`:                   "",
		`{"schema":1,"program":"x","state":"Failed","fault":"disk"}`:    FaultDisk,
		`{"schema":1,"program":"x","state":"Failed","fault":"another"}`: "",
	} {
		r, err := DecodeReport(text)
		if err != nil || r.Fault.Known() != want || r.WaitsForRoom() != (want == FaultDisk) || r.Heals() != (want == FaultDisk) {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
}

// TestWhatHealsAndWhatBlamesTheHost: temporary faults count when they last, and faults of the host do not count against the bundle.
func TestWhatHealsAndWhatBlamesTheHost(t *testing.T) {
	for fault, want := range map[Fault][3]bool{ // failed and heals, failed and blames the host, rolled back and blames the host
		FaultAPI: {true, false, false}, FaultDisk: {true, false, false}, FaultLayer: {true, false, false}, FaultHost: {true, true, true},
		FaultInput: {}, FaultAgent: {}, "": {}, "another": {},
	} {
		failed, back := Report{State: StateFailed, Fault: fault}, Report{State: StateRolledBack, Fault: fault}
		if got := [3]bool{failed.Heals(), failed.BlamesHost(), back.BlamesHost()}; got != want || back.Heals() {
			t.Errorf("fault %q: %v, want %v; rolled back heals: %t", fault, got, want, back.Heals())
		}
		if (Report{State: StateApplied, Fault: fault}).BlamesHost() {
			t.Errorf("fault %q: the host of a bundle that is applied is blamed", fault)
		}
	}
}
