package configure

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"wmco/bundle/published"
	"wmco/controller/fleet"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode/record"
	"wmco/render"
)

// TestANodeOfAnotherOperatorIsAdopted when that is wanted, with the host that states under the pinned key that it is this Node. Nothing is changed on
// the host.
func TestANodeOfAnotherOperatorIsAdopted(t *testing.T) {
	wanted := annotated(published.AdoptAnnotation, published.AdoptTrue)
	pinned := func(seed byte) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Annotations[hosts.PinAnnotation] = " " + hosts.EncodeKey(hostKey(t, seed)) + "\n"
		}
	}
	// waits adds a Node that the existing operator has joined, and that reports the address of the host.
	waits := func(s *scene, changes ...func(*corev1.Node)) {
		s.addNode("win-a", hostA, append(changes, annotated(VersionAnnotation, "10"))...)
		s.host(hostA).ClaimedBy = "win-a"
	}
	const (
		joined   = "Joined Joined: "
		unpinned = "oc annotate node win-a windowsmachineconfig.openshift.io/ssh-host-key- windowsmachineconfig.openshift.io/ssh-host-key-type-"
	)
	notIt := func(node, name string) string {
		return refused(ReasonNotTheHost,
			"node "+node+" is to be adopted and reports the address 10.0.140.21, and the host there reports that it is node "+
				`"`+name+`"; nothing was changed on it`,
			"check the host of node "+node+", and whether the address is its own; if the computer was renamed, restore its name")
	}
	otherKey := func(shown, unpin string) string {
		return refused(ReasonHostKey,
			"the host at 10.0.140.21 has the key "+shown+", and the existing operator has pinned another one for node win-a "+
				"(annotation windowsmachineconfig.openshift.io/ssh-host-key); nothing was changed on it",
			"if the host was installed again, or got another key, remove what was pinned: "+unpinned+
				"; otherwise another host answers, or has answered first: find out which, and forget its key: "+unpin)
	}
	for name, tt := range map[string]struct {
		scene func(*scene)
		want  string
		// node is that of the Progress, adopting that of the record.
		node, adopting string
	}{
		"nobody wants it":         {func(s *scene) { waits(s) }, joined, "win-a", ""},
		"its annotation is false": {func(s *scene) { waits(s, annotated(published.AdoptAnnotation, "false")) }, joined, "win-a", ""},
		"its annotation asks":     {func(s *scene) { waits(s, wanted) }, recorded, "win-a", "win-a"},
		"the settings ask": {
			func(s *scene) { waits(s); s.inputs.Cluster.Settings.Adoption = render.AdoptionRollout }, recorded, "win-a", "win-a",
		},
		"the host has the pinned key": {
			func(s *scene) { waits(s, wanted, pinned(keyA)) }, recorded, "win-a", "win-a",
		},
		"the host has another key, at the first contact": {
			func(s *scene) { waits(s, wanted, pinned(keyB)) },
			refused(ReasonHostKey, "the host key of Administrator@10.0.140.21 changed: pinned none, offered another key",
				"if the host was reinstalled or its keys were replaced, remove the old key and connect again: "+unpinned+
					"; otherwise another host answers at its address"),
			"win-a", "",
		},
		"the host has another key, which this operator has pinned": {
			func(s *scene) { waits(s, wanted, pinned(keyB)); s.addRecord(s.recordOf(hostA, "", keyA)) },
			otherKey("ssh-ed25519 "+ssh.FingerprintSHA256(hostKey(t, keyA)), unpinA), "win-a", "",
		},
		"the host reports another name": {func(s *scene) { waits(s, wanted); s.claims("WIN-B", hostA) }, notIt("win-a", "win-b"), "win-a", ""},
		"the host is another host's Node": {
			func(s *scene) { waits(s, wanted); s.addRecord(s.recordOf(hostB, "win-a", keyB)) },
			refused(ReasonNameTaken, "the host would register as Node win-a, which is 10.0.140.22 (10.0.140.22)", "rename the computer of this host"),
			"win-a", "",
		},
		"another Node lies about the address": {
			func(s *scene) {
				s.addNode("win-0", hostA, annotated(VersionAnnotation, "10"), wanted)
				s.addNode("win-a", hostA, annotated(VersionAnnotation, "10"), wanted)
				s.host(hostA).ClaimedBy, s.host(hostA).AlsoClaimedBy = "win-0", []string{"win-a"}
			}, recorded, "win-0", "win-a",
		},
		"two Nodes lie about the address": {
			func(s *scene) {
				s.addNode("win-0", hostA, annotated(VersionAnnotation, "10"), wanted)
				s.addNode("win-1", hostA, annotated(VersionAnnotation, "10"), wanted)
				s.host(hostA).ClaimedBy, s.host(hostA).AlsoClaimedBy = "win-0", []string{"win-1"}
			}, notIt("win-0", "win-a"), "win-0", "",
		},
		"another Node that is not wanted lies about the address": {
			func(s *scene) {
				s.addNode("win-0", hostA, annotated(VersionAnnotation, "10"))
				s.addNode("win-a", hostA, annotated(VersionAnnotation, "10"), wanted)
				s.host(hostA).ClaimedBy, s.host(hostA).AlsoClaimedBy = "win-0", []string{"win-a"}
			}, recorded, "win-0", "win-a",
		},
		"the host is a node, and another Node lies about its address": {
			func(s *scene) {
				s.isNode(annotated(VersionAnnotation, "10"))
				s.addNode("win-0", hostA, annotated(VersionAnnotation, "10"))
				s.host(hostA).ClaimedBy = "win-0"
			}, joined, "win-a", "",
		},
		"the Node was deleted":   {func(s *scene) { s.host(hostA).ClaimedBy = "win-a" }, registering, "", ""},
		"the Node does not wait": {func(s *scene) { s.addNode("win-a", hostA); s.host(hostA).ClaimedBy = "win-a" }, recorded, "win-a", ""},
		"the Node is known not to be": {
			func(s *scene) { s.addNode("win-a", hostA, annotated(VersionAnnotation, "10")) },
			refused(fleet.ReasonWaitingForAdoption, "the host is node win-a of the existing operator, which waits for adoption", fleet.AdoptFix("win-a")), "", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tt.scene(s)
			p := s.join(hostA)
			if diff := cmp.Diff(tt.want, described(p)); diff != "" || p.Node != tt.node && p.Reason != ReasonRegistering {
				t.Errorf("node %q, -want +got\n%s", p.Node, diff)
			}
			if did := s.network.at[hostA].did; len(did) > 0 && tt.want != registering {
				t.Errorf("done on the host: %v", did)
			}
			r := s.record(record.OfEntry(hostA))
			if adopting := r.Node; r.Adopting && adopting != tt.adopting || !r.Adopting && tt.adopting != "" {
				t.Errorf("the record: %+v", r)
			}
			if tt.adopting != "" && r.Origin != record.OriginAdopted {
				t.Errorf("the origin: %+v", r)
			}
		})
	}
}

// unpinA is the command that forgets the key of hostA.
const unpinA = `oc -n operator patch configmap windows-hosts-7 --type=json -p '[{"op":"remove","path":"/data/10.0.140.21"}]'`

// TestAnAdoptionThatCannotBeReadIsAnError, and the host is not reached.
func TestAnAdoptionThatCannotBeReadIsAnError(t *testing.T) {
	s := newScene(t)
	s.host(hostA).ClaimedBy = "win-a"
	s.fails["get win-a"] = errAPIServer
	if _, err := s.joiner.JoinHost(t.Context(), Ref{Address: hostA}); err == nil || s.record(record.OfEntry(hostA)).HostKey != "" {
		t.Errorf("%v", err)
	}
}

// TestANodeThatIsDeletedDuringItsAdoptionIsAskedAboutAgain.
func TestANodeThatIsDeletedDuringItsAdoptionIsAskedAboutAgain(t *testing.T) {
	s := newScene(t)
	h := s.hostAt(hostA)
	gone := corev1.Node{}
	gone.Name = "win-a"
	if got := described(h.identifyAdopted(t.Context(), []corev1.Node{gone})); got != recorded {
		t.Error(got)
	}
}
