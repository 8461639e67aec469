package golden

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/payload"
	"wmco/render/preview"
)

// TestEachVersionHasACluster of Kubernetes in the cases, without a finding about its version. A must-gather of 4.19 and a cluster of OKD are among them.
func TestEachVersionHasACluster(t *testing.T) {
	about := []string{reason.ClusterVersionUnknown, reason.ClusterVersionUnsupported, reason.KubeletKept, reason.KubeletTooNew, reason.APIServerVersionUnknown}
	clean := map[string]bool{}
	for _, dir := range caseDirs(t, "cases") {
		version := readAll(t, dir).Cluster.Version
		for _, n := range renderNodes(t, dir) {
			var found bundle.Findings
			must(t, json.Unmarshal(n.tree[preview.FindingsFile], &found))
			if !slices.ContainsFunc(found, func(f bundle.Finding) bool { return slices.Contains(about, f.Reason) }) {
				minor, _ := payload.KubernetesOf(version)
				clean[fmt.Sprintf("1.%d", minor)] = true
				clean[filepath.Base(dir)+" "+version] = true
			}
		}
	}
	for _, r := range payload.Releases() {
		if !clean[r.Minor] {
			t.Errorf("no cluster with Kubernetes %s is without a finding about versions", r.Minor)
		}
	}
	for _, want := range []string{"aws-must-gather-4.19 4.19.11", "none-okd-4.19 4.19.0-okd-scos.15"} {
		if !clean[want] {
			t.Errorf("%s has a finding about versions", want)
		}
	}
}

// TestTheReadmeNamesTheClusters that this release is for, OKD first.
func TestTheReadmeNamesTheClusters(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	must(t, err)
	all := payload.ClusterVersions()
	first, last := all[0], all[len(all)-1]
	want := "**OKD and OpenShift " + first.Cluster + " to " + last.Cluster + "** (Kubernetes " + first.Kubernetes + " to " + last.Kubernetes + ")"
	if !strings.Contains(string(text), want) {
		t.Errorf("README.md does not say %q", want)
	}
}
