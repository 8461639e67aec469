package render

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/layout"
	"wmco/payload"
)

// TestTheCatalogHasTheServicesOfTheTable: one description, used by render and by the node agent.
func TestTheCatalogHasTheServicesOfTheTable(t *testing.T) {
	names := func(kind bundle.EntryKind) []string {
		var list []string
		for _, r := range Catalog() {
			if r.Kind == kind {
				list = append(list, r.Name)
			}
		}
		slices.Sort(list)
		return list
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(layout.ServiceNames())), names(bundle.KindService)); diff != "" {
		t.Errorf("services (-table +catalog):\n%s", diff)
	}
	var rules []string
	for _, r := range layout.Firewall() {
		rules = append(rules, r.Name)
		if portDoc(r.Name) == "" {
			t.Errorf("%s: the documentation does not say what it is for", r.Name)
		}
	}
	slices.Sort(rules)
	if diff := cmp.Diff(rules, names(bundle.KindFirewall)); diff != "" {
		t.Errorf("firewall (-table +catalog):\n%s", diff)
	}
	if diff := cmp.Diff([]string{layout.BaseNetwork, layout.OverlayNetwork}, names(bundle.KindNetwork)); diff != "" {
		t.Errorf("networks (-table +catalog):\n%s", diff)
	}
}

// TestAServiceOutsideOfTheTableIsNotRendered: a defect of this program ends here, and not on a node.
func TestAServiceOutsideOfTheTableIsNotRendered(t *testing.T) {
	c := bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoin}
	e := emitter{layer: c}
	if err := e.normalizeLayer(); err != nil {
		t.Fatal(err)
	}
	e.layer.Services = []bundle.Service{{Name: "WinDefend", Start: bundle.StartAuto, Argv: []string{payload.Find(payload.Kubelet).Path}}}
	if err := e.normalizeLayer(); err == nil {
		t.Error("a foreign service was rendered")
	}
}
