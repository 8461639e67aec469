package payload

import "testing"

// TestWhatOpenShiftRefuses is the table of its rule: even clusters take kubelets two minor versions behind, odd ones one.
func TestWhatOpenShiftRefuses(t *testing.T) {
	for _, tt := range []struct {
		cluster, kubelet string
		want             bool
	}{
		{"4.20.4", "v1.33.13", false},
		{"4.20.4", "v1.32.13", true},   // 4.21 takes one
		{"4.20.4", "v1.31.14", true},   // EUS to EUS
		{"4.19.11", "v1.31.14", false}, // 4.20 takes two
		{"4.19.11", "v1.30.9", true},   // too old for 4.19
		{"4.22.9", "v1.35.4", false},
		{"4.22.9", "v1.34.9", true},  // OpenShift takes 4.23 for the next
		{"4.23.1", "v1.35.4", false}, // 4.24 takes two
		{"4.24.0", "v1.36.3", true},
		{"5.0.3", "v1.36.3", false},
		{"5.0.3", "v1.35.4", true},
		{"5.1.0", "v1.36.3", false},
		{"5.1.0", "v1.35.4", true},
		{"5.0.3", "v1.37.0", false}, // ahead: OpenShift reports Unknown
		{"5.0.3-okd-scos.1", "v1.35.4+1234567", true},
		{"5.0.3", "", false},
		{"", "v1.31.14", false},
		{"6.0.0", "v1.31.14", false},
	} {
		if got := RefusesUpdate(tt.cluster, tt.kubelet); got != tt.want {
			t.Errorf("cluster %s, kubelet %s: %t", tt.cluster, tt.kubelet, got)
		}
	}
}
