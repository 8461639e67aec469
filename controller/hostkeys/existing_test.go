package hostkeys

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"wmco/controller/windowsnode/record"
)

// TestWhichHostsAreKept: a record is removed only where nothing shows that its host is still one of the cluster. A host without a record is taken
// for another one.
func TestWhichHostsAreKept(t *testing.T) {
	instance := func(entry string) record.Record {
		r := record.New(record.OfEntry(entry))
		r.Node, r.NodeUID = "win-a", "uid"
		return r
	}
	machine := record.Record{Machine: "m"}
	entries := map[record.ID]bool{record.OfEntry("192.0.2.9"): true}
	for _, tt := range []struct {
		name string
		is   existing
		host record.Record
		want bool
	}{
		{"a Machine that exists", existing{machines: map[types.UID]bool{"m": true}}, machine, true},
		{"a Machine that was deleted", existing{machines: map[types.UID]bool{"other": true}}, machine, false},
		{"a Machine that was deleted, and its Node stays", existing{nodes: map[string]types.UID{"": ""}}, machine, false},
		{"a Machine while Machines are not served", existing{unserved: true}, machine, true},
		{"an entry that is there", existing{entries: entries}, instance("192.0.2.9"), true},
		{"an entry that was removed", existing{entries: entries}, instance("192.0.2.1"), false},
		{"an entry that was removed, and its Node exists", existing{entries: entries, nodes: map[string]types.UID{"win-a": "uid"}}, instance("192.0.2.1"), true},
		{"an entry that was removed, and another Node has the name", existing{entries: entries, nodes: map[string]types.UID{"win-a": "other"}}, instance("192.0.2.1"), false},
		{"no entry at all: the ConfigMap may be gone by mistake", existing{}, instance("192.0.2.1"), true},
		{"an entry that was removed, while Machines are not served", existing{entries: entries, unserved: true}, instance("192.0.2.1"), false},
	} {
		if got := tt.is.hasHost(tt.host); got != tt.want {
			t.Errorf("%s: kept %t", tt.name, got)
		}
	}
}
