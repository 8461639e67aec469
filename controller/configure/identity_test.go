package configure

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

const (
	registering = "Joining WaitingForNode: waiting for the Node: the kubelet registers it when its certificate is approved"
	recorded    = "Joining Completing: the host is recorded as a Node"
)

// described is a Progress as one text.
func described(p Progress) string {
	return fmt.Sprintf("%s %s: %s", p.State, p.Reason, p.DisplayText())
}

// refused is described of a refusal.
func refused(reason, message, fix string) string {
	return described(Progress{State: StateFailed, Reason: reason, Message: message, Fix: fix})
}

// identityCase is a host of the inputs that is not known to be a Node. It is reached under its key, and identifies itself.
type identityCase struct {
	// scene is what differs from newScene.
	scene func(*scene)
	// at is the address of the host, hostA without it.
	at string
	// want is its Progress: registering if it gets the bundle to join with, recorded if it is a Node.
	want string
	// node is the Node of its record afterwards.
	node string
}

// checkIdentities compares what a host is found to be, and that it is changed only if it may join.
func checkIdentities(t *testing.T, cases map[string]identityCase) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if tt.scene != nil {
				tt.scene(s)
			}
			at := tt.at
			if at == "" {
				at = hostA
			}
			if diff := cmp.Diff(tt.want, described(s.join(at))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if did := s.network.at[at].did; len(did) > 0 != (tt.want == registering) {
				t.Errorf("what was done on the host: %v", did)
			}
			r := s.record(gather.HostID(*s.host(at)))
			if r.Node != tt.node || tt.want == recorded && !r.IsNode(tt.node, types.UID("uid-"+tt.node)) {
				t.Errorf("the record is %+v", r)
			}
		})
	}
}

// claims has the host at hostA report a computer name and addresses.
func (s *scene) claims(name string, addresses ...string) {
	s.network.at[hostA].facts = factsOf(name, addresses...)
}

// renameEntry has the entry of hostA be a name, which the operator looks up.
func (s *scene) renameEntry(name, resolved string) {
	s.inputs.All, s.inputs.Instances = nil, nil
	s.addEntry(name, resolved)
	s.network.at[name] = s.network.at[hostA]
}

// addSecondEntry adds the entry hostB for the host at hostA.
func (s *scene) addSecondEntry() {
	s.addEntry(hostB)
	s.claims("WIN-A", hostA, hostB)
	s.network.at[hostB] = s.network.at[hostA]
}

// alsoAt gives a Node one more address.
func alsoAt(address string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
	}
}

// TestAHostIsRecordedAsItsNode by its own name, where the Node has its addresses, and joins where there is no such Node.
func TestAHostIsRecordedAsItsNode(t *testing.T) {
	checkIdentities(t, map[string]identityCase{
		"there is no Node":             {want: registering},
		"there is one of another name": {scene: func(s *scene) { s.addNode("win-b", hostB) }, want: registering},
		"its Node has its address":     {scene: func(s *scene) { s.addNode("win-a", hostA) }, want: recorded, node: "win-a"},
		"the host has more addresses": {
			scene: func(s *scene) { s.addNode("win-a", hostA); s.claims("WIN-A", hostA, "10.132.0.2") }, want: recorded, node: "win-a",
		},
		"its Node has two of its addresses": {
			scene: func(s *scene) {
				s.addNode("win-a", hostA, alsoAt("10.132.0.2"))
				s.claims("WIN-A", hostA, "10.132.0.2")
			},
			want: recorded, node: "win-a",
		},
		"its Node does not say its operating system": {
			scene: func(s *scene) { s.addNode("win-a", hostA, func(n *corev1.Node) { n.Labels = nil }) }, want: recorded, node: "win-a",
		},
		"its Node was deleted and made again": {
			scene: func(s *scene) {
				r := s.recordOf(hostA, "win-a", keyA)
				r.NodeUID = "before"
				s.addRecord(r)
				s.addNode("win-a", hostA)
			},
			want: recorded, node: "win-a",
		},
		"it was renamed": {
			scene: func(s *scene) { s.addRecord(s.recordOf(hostA, "win-z", keyA)); s.addNode("win-a", hostA) }, want: recorded, node: "win-a",
		},
		"its entry is a name": {scene: func(s *scene) { s.renameEntry("win-a.example.com", hostA) }, at: "win-a.example.com", want: registering},
		"its entry is a name, and its Node exists": {
			scene: func(s *scene) { s.renameEntry("win-a.example.com", hostA); s.addNode("win-a", hostA) },
			at:    "win-a.example.com", want: recorded, node: "win-a",
		},
		"its Machine has a translated address": {scene: func(s *scene) { s.onlyMachine("m"); s.claims("WIN-A", "192.168.0.5") }, want: registering},
	})
}

// TestAHostIsRefusedByItsKeyOrFacts before anything is changed there.
func TestAHostIsRefusedByItsKeyOrFacts(t *testing.T) {
	const other = "https://api-int.other.example.com:6443"
	translated := func(addresses string) string {
		return refused(ReasonTranslated,
			"the host that answers at 10.0.140.21 has no adapter with this address (it has "+addresses+"); its kubelet could not announce it",
			"use the host's own address in the network of the cluster in place of 10.0.140.21; the operator and the pods have to reach it there")
	}
	twice := func(this, that string) string {
		return refused(ReasonSameHost, this+" is the same host as "+that+", which is in the inputs too",
			"remove one of the two entries of windows-instances")
	}
	checkIdentities(t, map[string]identityCase{
		"its kubelet is one of another cluster": {
			scene: func(s *scene) {
				s.network.at[hostA].facts.Kubelet = bundle.Kubelet{Program: `C:\k\kubelet.exe`, Server: other}
			},
			want: refused(ReasonOtherCluster,
				`the kubelet of the host belongs to another cluster, whose API server is "`+other+`"; nothing was changed on it`,
				"check the address, or remove the host from that cluster first; if the cluster no longer exists, "+
					"delete the service on the host: net stop kubelet /y & sc.exe delete kubelet"),
		},
		"it has another key than the pinned one": {
			scene: func(s *scene) { s.addRecord(s.recordOf(hostA, "", keyB)) },
			want: refused(ReasonHostKey,
				"the host key of Administrator@10.0.140.21 changed: pinned none, offered another key",
				"if the host was reinstalled or its keys were replaced, remove the old key and connect again: "+
					`oc -n operator patch configmap windows-hosts-7 --type=json -p '[{"op":"remove","path":"/data/10.0.140.21"}]'; `+
					"otherwise another host answers at its address"),
		},
		"it does not have the address of its entry": {
			scene: func(s *scene) { s.claims("WIN-A", "192.168.0.5", "192.168.0.6") }, want: translated("192.168.0.5, 192.168.0.6"),
		},
		"it has many other addresses": {
			scene: func(s *scene) {
				s.claims("WIN-A", "1.0.0.1", "1.0.0.2", "1.0.0.3", "1.0.0.4", "1.0.0.5", "1.0.0.6", "1.0.0.7")
			},
			want: translated("1.0.0.1, 1.0.0.2, 1.0.0.3, 1.0.0.4, 1.0.0.5 and 2 more"),
		},
		"it reports no address": {scene: func(s *scene) { s.network.at[hostA].facts.Addresses = nil }, want: translated("none")},

		"it is the second entry of a host":   {scene: (*scene).addSecondEntry, at: hostB, want: twice(hostB, hostA)},
		"it is the first entry of that host": {scene: (*scene).addSecondEntry, want: registering},
		"the other entry is its computer name": {
			scene: func(s *scene) { s.renameEntry("win-b", hostA); s.addEntry("WIN-A", hostA) }, at: "win-b", want: twice("win-b", "WIN-A"),
		},
		"the other entry is the same one in other letters": {
			scene: func(s *scene) { s.renameEntry("win-a", hostA); s.addEntry("WIN-A", hostA) }, at: "win-a", want: registering,
		},
		"the other entry is its full name": {
			scene: func(s *scene) {
				s.renameEntry("win-b.example.com", hostA)
				s.addEntry("win-a.example.com", hostA)
				s.network.at["win-b.example.com"].facts.DNSSuffix = "Example.com"
			},
			at: "win-b.example.com", want: twice("win-b.example.com", "win-a.example.com"),
		},
		"the other entry is another host": {
			scene: func(s *scene) {
				s.addEntry(hostB)
				s.network.at[hostB] = &computer{hostKey: hostKey(t, keyB), facts: factsOf("WIN-B", hostB)}
			},
			at: hostB, want: registering,
		},
		"the other entry is a node by its record": {
			scene: func(s *scene) { s.addSecondEntry(); s.host(hostA).Name = "win-z" }, at: hostB, want: registering,
		},
		"the other one is a Node without an entry": {
			scene: func(s *scene) { s.addSecondEntry(); s.host(hostA).Backing = render.BackingNode }, at: hostB, want: registering,
		},
	})
}

// TestAHostDoesNotBecomeTheNodeOfAnotherRecord, even while that Node does not exist.
func TestAHostDoesNotBecomeTheNodeOfAnotherRecord(t *testing.T) {
	taken := refused(ReasonNameTaken, "the host would register as Node win-a, which is 10.0.140.22 (10.0.140.22)", "rename the computer of this host")
	same := refused(ReasonSameHost,
		"10.0.140.21 (10.0.140.21) is the same host as 10.0.140.22 (10.0.140.22), which is node win-a; nothing was changed on it",
		"remove the entry 10.0.140.21 of windows-instances")
	checkIdentities(t, map[string]identityCase{
		"another key": {
			scene: func(s *scene) { s.addEntry(hostB); s.addRecord(s.recordOf(hostB, "win-a", keyB)) }, want: taken,
		},
		"another key, and the entry was removed": {scene: func(s *scene) { s.addRecord(s.recordOf(hostB, "win-a", keyB)) }, want: taken},
		"two of them": {
			scene: func(s *scene) {
				s.addRecord(s.recordOf(hostB, "win-a", keyB))
				s.addRecord(s.recordOf("10.0.140.23", "win-a", keyB))
			},
			want: taken,
		},
		"another name": {scene: func(s *scene) { s.addRecord(s.recordOf(hostB, "win-b", keyB)) }, want: registering},
		"its address":  {scene: func(s *scene) { s.claims("WIN-A", hostA, hostB); s.addRecord(s.recordOf(hostB, "win-a", keyB)) }, want: same},
		"its key":      {scene: func(s *scene) { s.addEntry(hostB); s.addRecord(s.recordOf(hostB, "win-a", keyA)) }, want: same},
		"its key, and the entry stands for no host": {
			scene: func(s *scene) {
				s.inputs.Instances = append(s.inputs.Instances, gather.Instance{Address: hostB, Skipped: true})
				s.addRecord(s.recordOf(hostB, "win-a", keyA))
			},
			want: same,
		},
		"its key, and there are no entries at all": {
			scene: func(s *scene) { s.onlyMachine("m"); s.addRecord(s.recordOf(hostB, "win-a", keyA)) },
			want: refused(ReasonSameHost,
				"Machine m (10.0.140.21) is the same host as 10.0.140.22 (10.0.140.22), which is node win-a; nothing was changed on it",
				"none if 10.0.140.22 is being deleted; otherwise check which host has the address 10.0.140.21"),
		},
		"the key of a Machine": {
			scene: func(s *scene) {
				r := s.recordOf("10.0.140.31", "win-a", keyA)
				r.Entry, r.Machine, r.MachineName = "", "uid-m", "m"
				s.addRecord(r)
			},
			want: refused(ReasonSameHost,
				"10.0.140.21 (10.0.140.21) is the same host as Machine m (10.0.140.31), which is node win-a; nothing was changed on it",
				"remove the entry 10.0.140.21 of windows-instances"),
		},
	})
}

// TestAHostDoesNotBecomeAForeignNode: one of its name that is not its own by the addresses that the Node reports, and the operator knows.
func TestAHostDoesNotBecomeAForeignNode(t *testing.T) {
	const away = "10.0.140.99"
	taken := func(why, fix string) string {
		return refused(ReasonNameTaken, "the host would register as Node win-a, which exists and "+why, fix)
	}
	const (
		rename = "rename the computer at 10.0.140.21; if this host left the Node behind, delete the Node"
		which  = "check which of the two hosts has the address; do not delete the Node"
	)
	unreached := func(addresses, entry string) string {
		return taken("does not report the address at which the host is reached ("+addresses+")",
			"if it is the same host, write an address of the Node in the place of "+entry+"; if it is another computer, rename that; do not delete the Node")
	}
	// twoAddresses is a Node with two addresses of the host, of which the second is another host's too.
	twoAddresses := func(s *scene) {
		s.claims("WIN-A", hostA, away)
		s.addNode("win-a", hostA, alsoAt(away))
	}
	checkIdentities(t, map[string]identityCase{
		"it is one of Linux": {
			scene: func(s *scene) {
				s.addNode("win-a", hostA, func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "linux" })
			},
			want: taken("is a Node of linux", rename),
		},
		"it has no address yet": {
			scene: func(s *scene) {
				s.addNode("win-a", hostA, func(n *corev1.Node) { n.Status.Addresses = n.Status.Addresses[:1] })
			},
			want: "Joining Completing: the Node has no address yet",
		},
		"it has another address": {
			scene: func(s *scene) { s.addNode("win-a", hostB) }, want: taken("has other addresses (10.0.140.22)", rename),
		},
		"it has another address besides": {
			scene: func(s *scene) { s.addNode("win-a", hostA, alsoAt(away)) }, want: taken("has other addresses (10.0.140.21, 10.0.140.99)", rename),
		},
		"it has another address, and its kubelet runs": {
			scene: func(s *scene) { s.addNode("win-a", hostB, ready) },
			want:  taken("has other addresses (10.0.140.22)", "rename the computer at 10.0.140.21; do not delete the Node: its kubelet runs"),
		},
		"the host lies about its address": {
			scene: func(s *scene) { s.claims("WIN-A", hostA, hostB); s.addNode("win-a", hostB) }, want: unreached(hostB, hostA),
		},
		"the operator approved its certificate for this name": {
			scene: func(s *scene) {
				s.claims("WIN-A", hostA, hostB)
				s.addNode("win-a", hostB)
				s.addRecord(s.reserved(hostA, "win-a"))
			},
			want: recorded, node: "win-a",
		},
		"the operator approved its certificate for another name": {
			scene: func(s *scene) {
				s.claims("WIN-A", hostA, hostB)
				s.addNode("win-a", hostB)
				s.addRecord(s.reserved(hostA, "win-z"))
			},
			want: unreached(hostB, hostA), node: "win-z",
		},
		"its entry is the name of another address": {
			scene: func(s *scene) { s.renameEntry("win-a.example.com", away); s.addNode("win-a", hostA) },
			at:    "win-a.example.com", want: unreached(hostA, "win-a.example.com"),
		},
		"another entry has an address of it": {
			scene: func(s *scene) { twoAddresses(s); s.addEntry(away) },
			want:  taken("has the address of 10.0.140.99 (10.0.140.99)", which),
		},
		"another entry has an address of it, and is not looked up": {
			scene: func(s *scene) { twoAddresses(s); s.addEntry(away); s.host(away).Addresses = nil },
			want:  taken("has the address of 10.0.140.99 (10.0.140.99)", which),
		},
		"a Machine has an address of it": {
			scene: func(s *scene) {
				twoAddresses(s)
				s.addMachine("m", "10.0.140.31").Addresses = []string{"10.0.140.31", away}
			},
			want: taken("has the address of the Machine with UID uid-m (10.0.140.31)", which),
		},
		"a Machine that is being deleted has an address of it": {
			scene: func(s *scene) { twoAddresses(s); s.addMachine("m", away).Ending = true }, want: recorded, node: "win-a",
		},
		"a Node without an entry has an address of it": {
			scene: func(s *scene) { twoAddresses(s); s.addEntry(away); s.host(away).Backing = render.BackingNode }, want: recorded, node: "win-a",
		},
	})
}

// ready has the kubelet of a Node say that it is.
func ready(n *corev1.Node) {
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
}

// reserved is the record of an entry whose certificate was approved under a name, before its Node was there.
func (s *scene) reserved(entry, node string) record.Record {
	r := s.recordOf(entry, node, keyA)
	r.NodeUID = ""
	return r
}
