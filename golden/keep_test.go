package golden

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"wmco/bundle"
	"wmco/render"
)

// TestNodesThatWaitForExecutablesGetPortableEntriesAlone: what is kept for a node differs from what it has in portable entries alone, and
// from what is wanted in all others.
func TestNodesThatWaitForExecutablesGetPortableEntriesAlone(t *testing.T) {
	all := map[string]bundle.Bundle{}
	for _, dir := range caseDirs(t, "cases") {
		for name, b := range bundles(t, readAll(t, dir)) {
			if b.Cluster.Stage == bundle.StageJoined {
				all[filepath.Base(dir)+" "+name] = b.Bundle
			}
		}
	}
	passed, held := map[render.RowID]bool{}, map[render.RowID]bool{}
	base := all["none win-a"]
	if base.Cluster.Stage == "" {
		t.Fatalf("no case none: %v", slices.Sorted(maps.Keys(all)))
	}
	for name, other := range all {
		for _, pair := range [][2]bundle.Bundle{{base, other}, {other, base}} {
			has, want := pair[0], pair[1]
			layer, err := render.Keep(has.Cluster, want.Cluster)
			if err != nil {
				t.Fatalf("none and %s: %v", name, err)
			}
			kept := bundle.Bundle{Cluster: layer, Node: has.Node}
			if err := kept.Check(); err != nil {
				t.Fatalf("none and %s: %v", name, err)
			}
			for _, c := range bundle.Diff(has, kept) {
				row, _ := render.FindRow(c.Entry)
				if passed[row.ID] = true; !row.Portable {
					t.Errorf("none and %s: %s changes", name, c.Entry)
				}
			}
			for _, c := range bundle.Diff(bundle.Bundle{Cluster: kept.Cluster}, bundle.Bundle{Cluster: want.Cluster}) {
				row, _ := render.FindRow(c.Entry)
				if held[row.ID] = true; row.Portable {
					t.Errorf("none and %s: %s does not change", name, c.Entry)
				}
			}
		}
	}
	for _, row := range []render.RowID{"hosts.toml", "environment/proxy", "trusted-ca"} {
		if !passed[row] {
			t.Errorf("no two cases differ in %s", row)
		}
	}
	for _, row := range []render.RowID{"kubelet.conf", "service/windows-instance-config-daemon", "payload/kubelet"} {
		if !held[row] {
			t.Errorf("no two cases differ in %s", row)
		}
	}
}
