package objects_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/controller/gather/objects"
)

// TestMustGatherEqualsItsManifests reads the example clusters: a must-gather has many objects twice, and equals the manifests
// that it was made from.
func TestMustGatherEqualsItsManifests(t *testing.T) {
	const clusters = "../../../golden/clusters/"
	manifests := readClusters(t, clusters+"common", clusters+"aws")
	gathered := readClusters(t, clusters+"mustgather")
	if len(gathered) < 20 {
		t.Errorf("the must-gather holds %d objects", len(gathered))
	}
	for name, text := range gathered {
		if want, ok := manifests[name]; ok {
			if diff := cmp.Diff(want, text); diff != "" {
				t.Errorf("%s: -manifests +must-gather:\n%s", name, diff)
			}
		}
	}
}

// readClusters returns the JSON of each object in the folders.
func readClusters(t *testing.T, paths ...string) map[string]string {
	t.Helper()
	set, err := objects.NewPathsReader(paths, nil).Read(context.Background(), clusterWants())
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Findings) > 0 {
		t.Errorf("the findings are %v", set.Findings)
	}
	out := map[string]string{}
	for _, o := range set.Objects {
		out[nameOf(o)] = string(o.JSON)
	}
	return out
}
