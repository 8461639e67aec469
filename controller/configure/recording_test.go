package configure

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

var errAPIServer = errors.New("the API server refuses")

// TestWhatIsRecordedOfAHost that is a Node.
func TestWhatIsRecordedOfAHost(t *testing.T) {
	report, err := published.Report{State: published.StateApplied}.Encode()
	must(t, err)
	for name, tt := range map[string]struct {
		scene func(*scene)
		at    string
		// differs is how the record differs from that of a host which the operator has joined.
		differs func(*record.Record)
	}{
		"it has not joined": {func(s *scene) { s.addNode("win-a", hostA) }, hostA, func(*record.Record) {}},
		"another operator has not finished": {func(s *scene) {
			s.addNode("win-a", hostA, annotated(VersionAnnotation, "10"), annotated(JoiningAnnotation, ValueTrue),
				annotated(published.DesiredAnnotation, "{}"))
		}, hostA, func(*record.Record) {}},
		"its agent has reported": {
			func(s *scene) { s.addNode("win-a", hostA, annotated(published.ReportAnnotation, report)) }, hostA,
			func(r *record.Record) { r.Origin = record.OriginAdopted },
		},
		"an older version has joined it": {
			func(s *scene) {
				s.addNode("win-a", hostA, annotated(VersionAnnotation, "10"), annotated(published.DesiredAnnotation, "{}"))
			}, hostA, func(r *record.Record) { r.Origin = record.OriginAdopted },
		},
		"it was recorded as adopted before its Node was made again": {
			func(s *scene) {
				r := s.reserved(hostA, "win-a")
				r.Origin = record.OriginAdopted
				s.addRecord(r)
				s.addNode("win-a", hostA)
			}, hostA, func(r *record.Record) { r.Origin = record.OriginAdopted },
		},
		"its entry is a name": {
			func(s *scene) {
				s.renameEntry("win-a.example.com", hostA)
				s.host("win-a.example.com").Addresses = []string{"10.0.140.90", hostA}
				s.addNode("win-a", hostA)
			}, "win-a.example.com",
			func(r *record.Record) {
				r.Entry, r.Address, r.Resolved = "win-a.example.com", "win-a.example.com", "10.0.140.21 10.0.140.90"
			},
		},
		"it is that of a Machine": {
			func(s *scene) { s.onlyMachine("m"); s.addNode("win-a", hostA) }, hostA,
			func(r *record.Record) { r.Entry, r.Resolved, r.Machine, r.MachineName = "", "", "uid-m", "m" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tt.scene(s)
			if got := described(s.join(tt.at)); got != recorded {
				t.Fatal(got)
			}
			want := s.recordOf(hostA, "win-a", keyA)
			tt.differs(&want)
			want.Schema = record.Schema
			want = want.WithAcceptedKey(s.publicKey(), recordKey())
			if diff := cmp.Diff(want, s.record(want.ID())); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestAPinnedKeyMovesToTheRecord when it is known which Node the host is.
func TestAPinnedKeyMovesToTheRecord(t *testing.T) {
	s := newScene(t)
	key := hosts.EncodeKey(hostKey(t, keyA))
	pins := s.addConfigMap(hosts.PinsConfigMap, map[string]string{hostA: key, hostB: key})
	s.addNode("win-a", hostA)
	if got := described(s.join(hostA)); got != recorded {
		t.Fatal(got)
	}
	must(t, s.client.Get(t.Context(), keyOf(pins), pins))
	if diff := cmp.Diff(map[string]string{hostB: key}, pins.Data); diff != "" || s.record(record.OfEntry(hostA)).HostKey != key {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestAnEntryIsReplacedByAnotherOne for the same host under the same key: the new entry has its Node, and the record of the old one is forgotten.
func TestAnEntryIsReplacedByAnotherOne(t *testing.T) {
	const (
		other = "the host would register as Node win-a, which exists and has other addresses (10.0.140.22)"
		moved = "the host has another address than before, and Node win-a does not report it yet (10.0.140.22)"
	)
	for name, tt := range map[string]struct {
		scene     func(*scene)
		want      string
		forgotten bool
		origin    record.Origin
	}{
		"the Node has the new address": {func(s *scene) { s.addNode("win-a", hostA) }, recorded, true, record.OriginAdopted},
		"the Node has the old one of its two": {
			func(s *scene) { s.claims("WIN-A", hostA, hostB); s.addNode("win-a", hostB) }, recorded, true, record.OriginAdopted,
		},
		"there is no Node": {func(*scene) {}, registering, true, record.OriginJoined},
		"the Node reports the old address yet": {
			func(s *scene) { s.addNode("win-a", hostB) },
			refused(ReasonNotTheHost, moved, "wait until its kubelet has written the Node; if it does not, start the service kubelet on the host"), false, "",
		},
		"the Node is another one, with the old address": {
			func(s *scene) { s.addNode("win-a", hostB, func(n *corev1.Node) { n.UID = "other" }) },
			refused(ReasonNameTaken, other, "rename the computer at 10.0.140.21; if this host left the Node behind, delete the Node"), false, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			old := s.recordOf(hostB, "win-a", keyA)
			old.Origin = record.OriginAdopted
			s.addRecord(old)
			tt.scene(s)
			if diff := cmp.Diff(tt.want, described(s.join(hostA))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if forgotten := s.record(old.ID()).HostKey == ""; forgotten != tt.forgotten {
				t.Errorf("the record of the old entry is forgotten: %t", forgotten)
			}
			if got := s.record(record.OfEntry(hostA)).Origin; got != tt.origin {
				t.Errorf("the origin of the new record is %q", got)
			}
		})
	}
}

// TestAnAPIServerThatFailsIdentifiesNoHost: nothing is changed on it, and it is no Node.
func TestAnAPIServerThatFailsIdentifiesNoHost(t *testing.T) {
	for name, tt := range map[string]struct {
		fails string
		want  string
	}{
		"the records cannot be listed": {"list", "listing the records of hosts: " + errAPIServer.Error()},
		"the Node cannot be read":      {"get win-a", errAPIServer.Error()},
		"the record cannot be written": {"patch " + record.ConfigMapName(record.OfEntry(hostA)), ": " + errAPIServer.Error()},
		"the record of the host is not read": {
			"get " + record.ConfigMapName(record.OfEntry(hostA)), "reading ConfigMap windows-hosts-7: " + errAPIServer.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.addNode("win-a", hostA)
			must(t, s.joiner.Login.Pin(t.Context(), targetAt(t, s, hostA), hostKey(t, keyA)))
			s.fails[tt.fails] = errAPIServer
			inputs := *s.inputs
			h := Host{Joiner: s.joiner, Wanted: &inputs, Node: *s.host(hostA)}
			p := h.applyHostBundle(t.Context())
			if p.State != StateFailed || !strings.HasSuffix(p.Message, tt.want) {
				t.Errorf("%s", described(p))
			}
			clear(s.fails)
			if did := s.network.at[hostA].did; len(did) > 0 || s.record(record.OfEntry(hostA)).Node != "" {
				t.Errorf("done on the host: %v", did)
			}
		})
	}
}

// TestAHostThatIsKnownSaysThatItIsItsNode before anything is changed there.
func TestAHostThatIsKnownSaysThatItIsItsNode(t *testing.T) {
	const renamed = `the host at 10.0.140.21 reports that it is node "win-b", and the operator knows it as node win-a; nothing was changed on it`
	foreign := factsOf("WIN-A", hostA)
	foreign.Kubelet = bundle.Kubelet{Program: "k", Server: "https://other"}
	for name, tt := range map[string]struct {
		node  render.Node
		facts bundle.Facts
		want  string
	}{
		"it does": {render.Node{}, factsOf("WIN-A", hostA), ""},
		"it reports no name": {
			render.Node{Address: hostA}, factsOf("", hostA), strings.Replace(renamed, "win-b", "", 1),
		},
		"it has another name": {
			render.Node{Address: hostA}, factsOf("WIN-B", hostA), renamed,
		},
		"the Node's name proves nothing": {
			render.Node{Name: "win-a", Address: hostA, Facts: factsOf("WIN-A", hostA)}, factsOf("WIN-B", hostA), renamed,
		},
		"its kubelet is another cluster's": {render.Node{}, foreign,
			`the kubelet of the host belongs to another cluster, whose API server is "https://other"; nothing was changed on it`},
	} {
		s := newScene(t)
		tt.node.Backing = render.BackingInstance
		got := ""
		if err := CheckSameNode(tt.node, "win-a", tt.facts, s.inputs.Cluster); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}
