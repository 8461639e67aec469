package desired

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// TestNamesOfOthers: also names in the record of a host whose entry or Machine may be deleted.
func TestNamesOfOthers(t *testing.T) {
	own := render.Node{Backing: render.BackingInstance, Address: "192.0.2.1", Addresses: []string{"192.0.2.1"}}
	h := &Hosts{
		All: []render.Node{own, {Backing: render.BackingInstance, Address: "b.example.com", Addresses: []string{"192.0.2.2"}}, {Backing: render.BackingNode, Address: "192.0.2.9"}},
		Records: record.NewSet(
			record.Record{Entry: "192.0.2.1", Address: "192.0.2.1", Node: "win-a"},
			record.Record{Entry: "b.example.com", Address: "192.0.2.8", Node: "win-b"}, // it had this address before
			record.Record{Entry: "c.example.com", Address: "192.0.2.3", Resolved: "192.0.2.3 fd00::3", Node: "win-c"},
			record.Record{Machine: "uid-d", MachineName: "machine-d", Address: "192.0.2.4"},
		),
	}
	got := h.NamesOfOthers(own)
	slices.Sort(got)
	got = slices.DeleteFunc(slices.Compact(got), func(name string) bool { return name == "" })
	want := []string{"192.0.2.2", "192.0.2.3", "192.0.2.4", "b.example.com", "c.example.com", "fd00::3", "machine-d", "win-b", "win-c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
