package kubelets

import (
	"testing"

	"wmco/payload"
)

func TestEveryReleaseOfThePayloadHasATable(t *testing.T) {
	if _, err := tables(); err != nil {
		t.Fatal(err)
	}
	for _, r := range payload.Releases() {
		table, ok := Of(r.Minor)
		if !ok || table.Version != r.Version {
			t.Errorf("Kubernetes %s: the table is that of %q, the payload has %s; run make generate", r.Minor, table.Version, r.Version)
		}
	}
	if _, ok := Of("1.2"); ok {
		t.Error("Kubernetes 1.2 has a table")
	}
}

// TestWhatKubeletsDifferIn is read from the sources of each release: what changed is what bundles have to follow.
func TestWhatKubeletsDifferIn(t *testing.T) {
	on, off, locked := Gate{Default: true}, Gate{}, Gate{Default: true, Locked: true}
	for minor, want := range map[string]struct {
		gates        int
		nodeLogQuery Gate
		winDSR       Gate
		flags        map[string]bool
		fields       map[string]bool
	}{
		"1.31": {167, off, off, map[string]bool{"cloud-config": true, "pod-infra-container-image": true}, map[string]bool{"crashLoopBackOff": false, "logging.flushFrequency": true}},
		"1.33": {191, off, on, map[string]bool{"cloud-config": true, "pod-infra-container-image": true}, map[string]bool{"crashLoopBackOff": true, "crashLoopBackOff.maxContainerRestartPeriod": true}},
		"1.35": {218, off, locked, map[string]bool{"cloud-config": false, "pod-infra-container-image": false}, map[string]bool{"memoryReservationPolicy": false}},
		"1.36": {242, locked, locked, map[string]bool{"cloud-config": false}, map[string]bool{"memoryReservationPolicy": true, "defaultPodSysctls": false}},
		"1.37": {0, locked, locked, nil, map[string]bool{"defaultPodSysctls": true}},
	} {
		table, _ := Of(minor)
		if n := len(table.Gates); n != want.gates && want.gates > 0 {
			t.Errorf("%s: %d gates, the kubelet under Wine had %d", minor, n, want.gates)
		}
		for name, w := range map[string]Gate{"NodeLogQuery": want.nodeLogQuery, "WinDSR": want.winDSR} {
			if g := table.Gates[name]; g.Locked != w.Locked || g.Default != w.Default {
				t.Errorf("%s: %s is %+v", minor, name, g)
			}
		}
		for _, flag := range []string{"config", "help", "node-ip", "v", "version", "windows-service", "windows-priorityclass"} {
			if !table.Flags[flag] {
				t.Errorf("%s: no flag --%s", minor, flag)
			}
		}
		for _, flag := range []string{"housekeeping-interval", "machine-id-file"} { // registered on Linux only
			if table.Flags[flag] {
				t.Errorf("%s: --%s is no flag on Windows", minor, flag)
			}
		}
		for flag, known := range want.flags {
			if table.Flags[flag] != known {
				t.Errorf("%s: --%s known: %t", minor, flag, !known)
			}
		}
		for field, known := range want.fields {
			if table.Fields[field] != known {
				t.Errorf("%s: field %s known: %t", minor, field, !known)
			}
		}
	}
}
