package payload

import (
	"testing"

	"github.com/Masterminds/semver/v3"

	"wmco/bundle"
)

func TestAgentPathHasTheDigest(t *testing.T) {
	d := bundle.Of([]byte("x"))
	if got, want := AgentPath(d), `C:\k\agent\wmco-node-2d711642b726.exe`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := AgentPattern(), `C:\k\agent\wmco-node-<digest12>.exe`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestKubeletVersionSkew: not newer than the API server, and at most three minor versions older.
func TestKubeletVersionSkew(t *testing.T) {
	kubelet := semver.MustParse(KubernetesVersion)
	for _, c := range ClusterVersions() {
		server := semver.MustParse(c.Kubernetes)
		if kubelet.Major() != server.Major() || kubelet.Minor() > server.Minor() || server.Minor()-kubelet.Minor() > 3 {
			t.Errorf("kubelet %s cannot serve cluster %s with Kubernetes %s", KubernetesVersion, c.Cluster, c.Kubernetes)
		}
	}
}

func TestPathsAreValidOnWindows(t *testing.T) {
	for _, e := range Table() {
		if err := bundle.CheckPath(e.Path); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
		if Find(e.Name).Package != e.Package || !e.Serves(bundle.PlatformNone) && len(e.Platforms) == 0 {
			t.Errorf("%+v", e)
		}
	}
	if e := Find("rootkit"); e.Name != "" {
		t.Errorf("%+v", e)
	}
}
