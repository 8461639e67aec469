package payload

import (
	"fmt"
	"slices"
	"strings"
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
	for _, c := range ClusterVersions() {
		kubelet, server := semver.MustParse(For(Kubelet, c.Kubernetes).Version), semver.MustParse(c.Kubernetes)
		if kubelet.Major() != server.Major() || kubelet.Minor() != server.Minor() {
			t.Errorf("cluster %s with Kubernetes %s gets kubelet %s", c.Cluster, c.Kubernetes, kubelet)
		}
	}
}

// TestANodeHasOneExecutableOfEachProgram: whatever its minor version is.
func TestANodeHasOneExecutableOfEachProgram(t *testing.T) {
	for _, r := range Releases() {
		if n, ok := MinorNumber(r.Minor); !ok || !strings.HasPrefix(r.Version, fmt.Sprintf("v1.%d.", n)) {
			t.Errorf("release %s is of minor version %s", r.Version, r.Minor)
		}
		of, all := ProgramsFor(r.Minor), Programs()
		if len(of) != len(all) {
			t.Fatalf("nodes with %s have %d programs, of %d", r.Minor, len(of), len(all))
		}
		for i, e := range of {
			if e.Program != all[i].Program || e.Path != all[i].Path || !slices.Equal(e.Platforms, all[i].Platforms) || For(e.Program, r.Minor).Name != e.Name {
				t.Errorf("%s: %+v beside %+v", r.Minor, e, all[i])
			}
		}
	}
	if newest := Releases()[len(Releases())-1]; Find(Kubelet).Version != newest.Version {
		t.Errorf("the program kubelet is %s, want the newest", Find(Kubelet).Version)
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
