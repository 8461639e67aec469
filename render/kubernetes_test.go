package render

import (
	"strings"
	"testing"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/payload"
)

// TestTheMinorVersionThatNodesGet: that of the cluster, and of a paused worker pool while it waits, which skips the versions in between (EUS to
// EUS). Findings say what that means for the cluster's next update.
func TestTheMinorVersionThatNodesGet(t *testing.T) {
	const refused = "OpenShift refuses the next minor update of the cluster"
	for _, tt := range []struct {
		what, cluster string
		pool          WorkerPool
		mode          PausedPoolMode
		want          string
		// reason and text are those of the finding, empty for none.
		reason, inMessage string
	}{
		{"as the cluster", "4.20.4", WorkerPool{Release: "4.20.4"}, PausedPoolWait, "1.33", "", ""},
		{"a pool that follows alone", "4.20.4", WorkerPool{Release: "4.18.30"}, PausedPoolWait, "1.33", "", ""},
		{"a pool that is paused at the same version", "4.20.4", WorkerPool{Paused: true, Release: "4.20.1"}, PausedPoolWait, "1.33", "", ""},
		{"EUS to EUS, half way", "4.19.11", WorkerPool{Paused: true, Release: "4.18.30"}, PausedPoolWait, "1.31", reason.KubeletKept, "is paused at 4.18.30: Windows nodes keep kubelet v1.31."},
		{"EUS to EUS, the cluster has arrived", "4.20.4", WorkerPool{Paused: true, Release: "4.18.30"}, PausedPoolWait, "1.31", reason.KubeletKept, refused},
		{"EUS to EUS, the pool is resumed", "4.20.4", WorkerPool{Release: "4.18.30"}, PausedPoolWait, "1.33", "", ""},
		{"a paused pool that is not waited for", "4.20.4", WorkerPool{Paused: true, Release: "4.18.30"}, PausedPoolFollow, "1.33", "", ""},
		{"three minor versions behind", "4.21.7", WorkerPool{Paused: true, Release: "4.18.30"}, PausedPoolWait, "1.31", reason.KubeletKept, refused},
		{"never more than three", "4.22.9", WorkerPool{Paused: true, Release: "4.18.30"}, PausedPoolWait, "1.32", reason.KubeletKept, refused},
		{"a pool that is newer than the cluster", "4.20.4", WorkerPool{Paused: true, Release: "4.21.7"}, PausedPoolWait, "1.33", "", ""},
		{"a paused pool of an unknown version", "4.20.4", WorkerPool{Paused: true}, PausedPoolWait, "1.33", "", ""},
		{"OKD", "4.20.0-okd-scos.3", WorkerPool{Paused: true, Release: "4.19.0-okd-scos.15"}, PausedPoolWait, "1.32", reason.KubeletKept, refused},
		{"a cluster that is too old", "4.17.3", WorkerPool{}, PausedPoolWait, "1.31", reason.KubeletTooNew, "has Kubernetes 1.30, and the oldest kubelet of this release"},
		{"the last ones of OpenShift 4", "4.23.2", WorkerPool{}, PausedPoolWait, "1.36", "", ""},
		{"the same, a pool of before", "4.24.0", WorkerPool{Paused: true, Release: "4.23.2"}, PausedPoolWait, "1.36", reason.KubeletKept, refused},
		{"a cluster that is not known yet", "4.25.1", WorkerPool{}, PausedPoolWait, "1.37", reason.ClusterVersionUnsupported, "and nodes get v1.37."},
		{"an unknown name", "6.0.0", WorkerPool{}, PausedPoolWait, "1.37", reason.ClusterVersionUnsupported, "4.18 to 5.1"},
		{"a cluster that is too new", "5.7.0", WorkerPool{}, PausedPoolWait, "1.37", reason.ClusterVersionUnsupported, "4.18 to 5.1"},
	} {
		c := Cluster{Version: tt.cluster, Pool: tt.pool}
		c.Settings.Kubernetes.PausedPool = tt.mode
		if got := c.Kubernetes(); got != tt.want {
			t.Errorf("%s: Kubernetes %s, want %s", tt.what, got, tt.want)
		}
		if r, _ := payload.ReleaseOf(tt.want); c.KubeletVersion() != r.Version {
			t.Errorf("%s: kubelet %s, want %s", tt.what, c.KubeletVersion(), r.Version)
		}
		found := c.checkVersion()
		if tt.reason == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || found[0].Reason != tt.reason || !strings.Contains(found[0].Message, tt.inMessage) || (tt.inMessage == refused) != strings.Contains(found[0].Message, refused) {
			t.Errorf("%s: %+v", tt.what, found)
		}
	}
}

// TestAnotherKubeletDrains: in-place minor version updates of kubelets are not supported (kubernetes.io/releases/version-skew-policy). It is so for
// each platform, and for the kubelet alone.
func TestAnotherKubeletDrains(t *testing.T) {
	for _, r := range Catalog() {
		if r.ID == executableRow(payload.Kubelet) && r.Impact == bundle.ImpactDrain && len(r.Platforms) == 0 {
			return
		}
	}
	t.Error("another kubelet does not drain its node")
}
