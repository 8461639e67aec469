package gather

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather/objects"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

func machineAt(name, uid string, addresses ...string) objects.Object {
	return object(groupMachine, "Machine", namespaceMachines, name, fmt.Sprintf(`{"metadata":{"name":%q,"uid":%q},"status":{"addresses":[%s]}}`, name, uid, internal(addresses)))
}

// internal are addresses in a status.
func internal(addresses []string) string {
	var list []string
	for _, a := range addresses {
		list = append(list, fmt.Sprintf(`{"type":"InternalIP","address":%q}`, a))
	}
	return strings.Join(list, ",")
}

// machineEnding is a Machine that is being deleted, or has failed.
func machineEnding(name, uid, address, phase string) objects.Object {
	deleted := ""
	if phase != "Failed" {
		deleted = `,"deletionTimestamp":"2026-01-01T00:00:00Z"`
	}
	return object(groupMachine, "Machine", namespaceMachines, name, fmt.Sprintf(`{"metadata":{"name":%q,"uid":%q%s},"status":{"phase":%q,"addresses":[{"type":"InternalIP","address":%q}]}}`, name, uid, deleted, phase, address))
}

// nodeSaying is a Node that reports addresses and facts.
func nodeSaying(t *testing.T, name, uid string, addresses ...string) objects.Object {
	t.Helper()
	report, err := published.Report{State: published.StateApplied, Facts: &bundle.Facts{Schema: bundle.FactsSchema, HostName: name, Addresses: addresses}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return object("", "Node", "", name, fmt.Sprintf(`{"metadata":{"name":%q,"uid":%q,"labels":{"windowsmachineconfig.openshift.io/byoh":"true"},"annotations":{%q:"192.0.2.9",%q:%q}},"status":{"addresses":[%s]}}`,
		name, uid, annotationInstance, published.ReportAnnotation, report, internal(addresses)))
}

// TestRecordsSayWhichHostANodeIs: fields of a Node do not.
func TestRecordsSayWhichHostANodeIs(t *testing.T) {
	entries := object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap, `{"data":{"192.0.2.2":"username=u","Win.example.com":"username=u"}}`)
	of := func(id record.ID, node, uid string) record.Record {
		r := record.New(id)
		r.Node, r.NodeUID, r.Address, r.Account = node, types.UID("uid-"+uid), "192.0.2.200", "kept"
		return r
	}
	for name, tt := range map[string]struct {
		objects []objects.Object
		records []record.Record
		want    []string
	}{
		"nothing is recorded": {
			[]objects.Object{machineAt("m-a", "m1", "192.0.2.1"), entries, nodeSaying(t, "win-a", "uid-1", "192.0.2.1")}, nil,
			[]string{"win-a Node 192.0.2.1 unconfirmed", "192.0.2.1 Machine 192.0.2.1 claimed by win-a", "192.0.2.2 Instance 192.0.2.2", "Win.example.com Instance Win.example.com"},
		},
		"all are recorded": {
			[]objects.Object{machineAt("m-a", "m1", "192.0.2.1"), entries, nodeSaying(t, "win-a", "uid-1", "192.0.2.1"), nodeSaying(t, "win-b", "uid-2", "10.9.9.9"), nodeSaying(t, "win-c", "uid-3", "192.0.2.2")},
			[]record.Record{of("machine_m1", "win-a", "1"), of("win.example.com", "win-b", "2"), of("192.0.2.2", "win-c", "3")},
			[]string{"win-a Machine 192.0.2.1 facts", "win-b Instance Win.example.com facts", "win-c Instance 192.0.2.2 facts"},
		},
		"a node that takes the addresses of others": {
			[]objects.Object{machineAt("m-a", "m1", "192.0.2.1"), entries, nodeSaying(t, "aaa", "uid-9", "192.0.2.1", "192.0.2.2"), nodeSaying(t, "win-a", "uid-1", "192.0.2.1")},
			[]record.Record{of("machine_m1", "win-a", "1"), of("win.example.com", "aaa", "9")},
			[]string{"aaa Instance Win.example.com facts", "win-a Machine 192.0.2.1 facts", "192.0.2.2 Instance 192.0.2.2", "finding aaa: Machine m-a", "finding aaa: the entry 192.0.2.2 of windows-instances"},
		},
		"a Node that was made anew": {
			[]objects.Object{machineAt("m-a", "m1", "192.0.2.1"), nodeSaying(t, "win-a", "uid-new", "192.0.2.1")},
			[]record.Record{of("machine_m1", "win-a", "1")},
			[]string{"win-a Node 192.0.2.1 unconfirmed", "192.0.2.1 Machine 192.0.2.1 claimed by win-a"},
		},
		"a Machine that was made anew": {
			[]objects.Object{machineAt("m-a", "m2", "192.0.2.1"), nodeSaying(t, "win-a", "uid-1", "192.0.2.1")},
			[]record.Record{of("machine_m1", "win-a", "1")},
			[]string{"win-a Node 192.0.2.200 facts", "192.0.2.1 Machine 192.0.2.1", "finding win-a: Machine m-a"},
		},
		"a Machine with the address of one that is being deleted and is a Node": {
			[]objects.Object{machineEnding("m-a", "m1", "192.0.2.1", "Deleting"), machineAt("m-b", "m2", "192.0.2.1"), nodeSaying(t, "win-a", "uid-1", "192.0.2.1"), nodeSaying(t, "win-b", "uid-2", "192.0.2.1")},
			[]record.Record{of("machine_m1", "win-a", "1")},
			[]string{"win-a Machine 192.0.2.1 facts ending", "win-b Node 192.0.2.1 unconfirmed", "192.0.2.1 Machine 192.0.2.1 claimed by win-b"},
		},
		"a Machine with the address of one that has failed and may be a Node": {
			[]objects.Object{machineEnding("m-a", "m1", "192.0.2.1", "Failed"), machineAt("m-b", "m2", "192.0.2.1"), nodeSaying(t, "win-a", "uid-1", "192.0.2.1")}, nil,
			[]string{"win-a Node 192.0.2.1 unconfirmed", "192.0.2.1 Machine 192.0.2.1 claimed by win-a ending", "192.0.2.1 Machine 192.0.2.1"},
		},
		"a Machine with the addresses of two Nodes": {
			[]objects.Object{machineAt("m-a", "m1", "192.0.2.1"), machineAt("m-b", "m2", "192.0.2.2"), machineAt("m-c", "m3", "192.0.2.1", "192.0.2.2"), nodeSaying(t, "win-a", "uid-1", "192.0.2.1"), nodeSaying(t, "win-b", "uid-2", "192.0.2.2")},
			[]record.Record{of("machine_m1", "win-a", "1"), of("machine_m2", "win-b", "2")},
			[]string{"win-a Machine 192.0.2.1 facts", "win-b Machine 192.0.2.2 facts", "192.0.2.1 Machine 192.0.2.1", "finding win-a: Machine m-c", "finding win-b: Machine m-c"},
		},
		"an entry that was removed": {
			[]objects.Object{entries, nodeSaying(t, "win-a", "uid-1", "192.0.2.7")},
			[]record.Record{of("192.0.2.7", "win-a", "1")},
			[]string{"win-a Node 192.0.2.200 facts removed 192.0.2.7", "192.0.2.2 Instance 192.0.2.2", "Win.example.com Instance Win.example.com"},
		},
		"two hosts that are one Node": {
			[]objects.Object{entries, nodeSaying(t, "win-a", "uid-1", "192.0.2.2")},
			[]record.Record{of("192.0.2.2", "win-a", "1"), of("win.example.com", "win-a", "1")},
			[]string{"win-a Node 192.0.2.2 unconfirmed", "192.0.2.2 Instance 192.0.2.2 claimed by win-a", "Win.example.com Instance Win.example.com"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := record.NewSet(tt.records...)
			r := gatherFrom(t, Options{Records: &set}, tt.objects...)
			var got []string
			for _, n := range r.Nodes {
				got = append(got, describeHost(n))
			}
			for _, f := range r.Findings {
				if f.Reason == "AddressClaimed" {
					whose, _, _ := strings.Cut(strings.TrimPrefix(f.Message, "the Node reports an address of "), ",")
					got = append(got, "finding "+f.Node+": "+whose)
				}
			}
			for i := range got {
				got[i] = strings.TrimSpace(got[i])
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnEntryWithTheAddressOfAMachine is not used, and kept where the Machine is about to go.
func TestAnEntryWithTheAddressOfAMachine(t *testing.T) {
	for fix, machine := range map[string]objects.Object{
		"remove the entry":                  machineAt("m-a", "m1", "192.0.2.2"),
		"wait until the Machine is deleted": machineEnding("m-a", "m1", "192.0.2.2", "Deleting"),
	} {
		entries := object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap, `{"data":{"192.0.2.2":"username=u"}}`)
		r := gatherFrom(t, Options{Records: &record.Set{}}, machine, entries)
		if i := r.Instances; len(i) != 1 || !i[0].Skipped || !strings.Contains(i[0].Finding.Message, "Machine m-a") || !strings.HasPrefix(i[0].Finding.Fix, fix) {
			t.Errorf("%+v", i)
		}
	}
}

// TestAnEntryWithANameOfAMachine is not used: the resolver gives no other host.
func TestAnEntryWithANameOfAMachine(t *testing.T) {
	machine := object(groupMachine, "Machine", namespaceMachines, "m-a", `{"metadata":{"name":"m-a","uid":"m1"},"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.2"},{"type":"InternalDNS","address":"win.example.com"}]}}`)
	entries := object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap, `{"data":{"Win.example.com":"username=u"}}`)
	r := gatherFrom(t, Options{Records: &record.Set{}, Lookups: map[string]Lookup{"Win.example.com": lookup("192.0.2.9")}}, machine, entries)
	if i := r.Instances; len(i) != 1 || !i[0].Skipped || !strings.Contains(i[0].Finding.Message, "Machine m-a") {
		t.Errorf("%+v", i)
	}
}

// TestAMachineTakesNoAddressOfANode: on vSphere its guest reports its addresses.
func TestAMachineTakesNoAddressOfANode(t *testing.T) {
	entries := object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap, `{"data":{"192.0.2.2":"username=u"}}`)
	for node, skipped := range map[string]bool{"win-b": false, "": true} {
		r := record.New(record.OfEntry("192.0.2.2"))
		r.Node = node
		set := record.NewSet(r)
		got := gatherFrom(t, Options{Records: &set}, machineAt("m-a", "m1", "192.0.2.2"), entries).Instances
		if len(got) != 1 || got[0].Skipped != skipped {
			t.Errorf("the entry of Node %q: %+v", node, got)
		}
	}
}

// TestANameTakesNoAddressOfAnotherEntry: a host that writes the record of its own name in the DNS gives it the address of another entry too. That one is used: an
// address, and a name whose host is recorded there.
func TestANameTakesNoAddressOfAnotherEntry(t *testing.T) {
	of := func(entry, resolved string) record.Record {
		r := record.New(record.OfEntry(entry))
		r.Node, r.Resolved = "node-"+entry, resolved
		return r
	}
	for name, tt := range map[string]struct {
		entry string
		// first and second are the resolver's answers for the two names.
		first, second []string
		records       []record.Record
		used          []string
	}{
		"an address": {"192.0.2.9", []string{"192.0.2.66", "192.0.2.9"}, nil, []record.Record{of("a.example.com", "192.0.2.66 192.0.2.9")}, []string{"192.0.2.9"}},
		"a name that is recorded": {
			"b.example.com", []string{"192.0.2.66", "192.0.2.9"}, []string{"192.0.2.9"},
			[]record.Record{of("a.example.com", "192.0.2.66"), of("b.example.com", "192.0.2.9")}, []string{"b.example.com"},
		},
		"the first of names without records": {"b.example.com", []string{"192.0.2.9"}, []string{"192.0.2.9"}, nil, []string{"a.example.com"}},
		"a name that has another address now": {
			"b.example.com", []string{"192.0.2.9"}, []string{"192.0.2.10"}, []record.Record{of("b.example.com", "192.0.2.9")}, []string{"a.example.com", "b.example.com"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := record.NewSet(tt.records...)
			entries := object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap, `{"data":{"a.example.com":"username=u","`+tt.entry+`":"username=u"}}`)
			r := gatherFrom(t, Options{Records: &set, Lookups: map[string]Lookup{"a.example.com": lookup(tt.first...), "b.example.com": lookup(tt.second...)}}, entries)
			var used []string
			for _, n := range r.Nodes {
				used = append(used, n.Address)
			}
			if !slices.Equal(used, tt.used) {
				t.Errorf("used are %q, want %q", used, tt.used)
			}
		})
	}
}

func describeHost(n render.Node) string {
	text := fmt.Sprintf("%s %s %s", n.ID(), n.Backing, n.Address)
	if !n.Facts.IsZero() {
		text += " facts"
	}
	if n.Unconfirmed {
		text += " unconfirmed"
	}
	if n.ClaimedBy != "" {
		text += " claimed by " + n.ClaimedBy
	}
	if n.Ending {
		text += " ending"
	}
	if n.RemovedEntry != "" {
		text += " removed " + n.RemovedEntry
	}
	return text
}

// TestTheAcceptedKeyOfAHostIsThatOfItsRecord: annotations of the Node have no part in it, and a text that is no key is none.
func TestTheAcceptedKeyOfAHostIsThatOfItsRecord(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	entries := object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap, `{"data":{"192.0.2.2":"username=u"}}`)
	for text, want := range map[string]string{key: key, "": "", "no key": "", key + "\nssh-rsa AAAA": ""} {
		r := record.New("192.0.2.2")
		r.Node, r.NodeUID = "win-a", "uid-1"
		r = r.WithAcceptedKey(text, bundle.Key("key of digests"))
		for _, uid := range []string{"uid-1", "uid-2"} {
			set := record.NewSet(r)
			nodes := gatherFrom(t, Options{Records: &set, RecordKey: bundle.Key("key of digests")}, entries, nodeSaying(t, "win-a", uid, "192.0.2.2")).Nodes
			if uid == "uid-2" {
				want = "" // a Node that was made anew is none of the record
			}
			if nodes[0].Name != "win-a" || nodes[0].AcceptedKey != want {
				t.Errorf("%q, Node %s: %q", text, uid, nodes[0].AcceptedKey)
			}
			if nodes := gatherFrom(t, Options{Records: &set, RecordKey: bundle.Key("another")}, entries, nodeSaying(t, "win-a", uid, "192.0.2.2")).Nodes; nodes[0].AcceptedKey != "" {
				t.Errorf("%q counts, which another one has sealed", text)
			}
		}
	}
}

func TestTheAccountOfAnEntry(t *testing.T) {
	for text, want := range map[string]string{"username=Administrator": "Administrator", " username = a\r\n": "a", "": "", "user=a": "", "username=-a": ""} {
		if got := InstanceAccount("192.0.2.1", text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := InstanceAccount("not an address", "username=a"); got != "" {
		t.Errorf("an address that is none: %q", got)
	}
}
