package configure

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
	"wmco/controller/keys"
	"wmco/controller/keys/username"
	"wmco/controller/layers"
	"wmco/controller/windowsnode/record"
	"wmco/layout"
	"wmco/render"
)

// isNode makes the host at hostA the Node win-a, by its record and in the inputs, with its overlay network.
func (s *scene) isNode(changes ...func(*corev1.Node)) {
	s.t.Helper()
	s.addNode("win-a", hostA, changes...)
	s.addRecord(s.recordOf(hostA, "win-a", keyA))
	facts := factsOf("WIN-A", hostA, "10.132.0.2")
	facts.Networks = []bundle.HNSNetwork{{Name: layout.OverlayNetwork, AddressPrefix: "10.132.0.0/24", ManagementIP: hostA}}
	facts.Endpoints = []bundle.HNSEndpoint{{Name: "VIPEndpoint", Network: layout.OverlayNetwork, IP: "10.132.0.5"}}
	s.network.at[hostA].facts = facts
	n := s.host(hostA)
	n.Name, n.Subnet, n.Facts, n.Origins = "win-a", "10.132.0.0/24", facts, render.Origins{}
}

// comesFrom notes how the host at hostA became a Node.
func (s *scene) comesFrom(origin record.Origin) {
	s.t.Helper()
	r := s.recordOf(hostA, "win-a", keyA)
	r.Origin = origin
	s.addRecord(r)
}

// desiredBundle returns the bundle of the host at hostA.
func (s *scene) desiredBundle() desired.Rendered {
	s.t.Helper()
	list, _, err := s.inputs.RenderBundles([]render.Node{*s.host(hostA)})
	must(s.t, err)
	return list[0]
}

// publish publishes the bundle of the host, and has its agent report.
func (s *scene) publish(r published.Report, changes ...func(*corev1.Node)) {
	s.t.Helper()
	b := s.desiredBundle().Bundle
	wanted, err := layers.PackBundle("win-a", b.Bundle)
	must(s.t, err)
	text, err := wanted.DesiredAnnotation(namespace, bundle.ImpactReboot).Encode()
	must(s.t, err)
	r.Desired = b.Digest
	report, err := r.Encode()
	must(s.t, err)
	n := s.node("win-a")
	n.Annotations[published.DesiredAnnotation], n.Annotations[published.ReportAnnotation] = text, report
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: published.Condition, LastHeartbeatTime: metav1.NewTime(noon())})
	for _, change := range changes {
		change(n)
	}
	s.updateNode(n)
}

// updateNode writes a Node and its status.
func (s *scene) updateNode(n *corev1.Node) {
	s.t.Helper()
	status := n.Status
	must(s.t, s.client.Update(s.t.Context(), n))
	n.Status = status
	must(s.t, s.client.Status().Update(s.t.Context(), n))
}

// applied is the report of an agent that has applied the bundle of the host.
func (s *scene) applied() published.Report {
	return published.Report{State: published.StateApplied, Applied: s.desiredBundle().Bundle.Digest, Features: published.Features()}
}

// TestANewNodeIsLabelledAndCordoned until it has joined, with what the operator knows of its host.
func TestANewNodeIsLabelledAndCordoned(t *testing.T) {
	const labelled = "Joining Completing: the Node is labelled, and cordoned until it has joined"
	kept := func(s *scene, k KeptNode) {
		keep(t, s.joiner.RejoiningNodes(), k)
	}
	for name, tt := range map[string]struct {
		scene               func(*scene)
		labels, annotations map[string]string
		cordoned            bool
	}{
		"of an entry": {
			func(s *scene) { s.isNode() },
			map[string]string{InstanceLabel: ValueTrue}, map[string]string{InstanceAnnotation: hostA, JoiningAnnotation: ValueTrue}, true,
		},
		"of a Machine": {
			func(s *scene) { s.onlyMachine("m"); s.isNode() }, nil,
			map[string]string{JoiningAnnotation: ValueTrue, hosts.PinAnnotation: "", hosts.PinTypeAnnotation: ""}, true,
		},
		"an administrator has cordoned it": {
			func(s *scene) { s.isNode(func(n *corev1.Node) { n.Spec.Unschedulable = true }) },
			map[string]string{InstanceLabel: ValueTrue}, map[string]string{InstanceAnnotation: hostA}, true,
		},
		"it was joined by hand, and has pods": {
			func(s *scene) {
				s.isNode(annotated(published.ReportAnnotation, "{}"))
				s.comesFrom(record.OriginAdopted)
			},
			map[string]string{InstanceLabel: ValueTrue}, map[string]string{InstanceAnnotation: hostA, published.ReportAnnotation: "{}"}, false,
		},
		"its agent has reported before the operator saw it": {
			func(s *scene) {
				s.isNode(annotated(published.ReportAnnotation, "{}"))
				s.comesFrom(record.OriginJoined)
			},
			map[string]string{InstanceLabel: ValueTrue}, map[string]string{InstanceAnnotation: hostA, published.ReportAnnotation: "{}", JoiningAnnotation: ValueTrue}, true,
		},
		"its host joins again": {
			func(s *scene) {
				s.isNode()
				kept(s, KeptNode{Name: "win-a", UID: "before", Address: hostA, Labels: map[string]string{"team": "a"}})
			},
			map[string]string{InstanceLabel: ValueTrue, "team": "a"}, map[string]string{InstanceAnnotation: hostA, JoiningAnnotation: ValueTrue}, true,
		},
		"its host joins again, and was cordoned": {
			func(s *scene) {
				s.isNode()
				kept(s, KeptNode{Name: "win-a", UID: "before", Address: hostA, Cordoned: true})
			},
			map[string]string{InstanceLabel: ValueTrue}, map[string]string{InstanceAnnotation: hostA}, true,
		},
		"another host had its name": {
			func(s *scene) {
				s.isNode()
				kept(s, KeptNode{Name: "win-a", UID: "before", Address: hostB, Labels: map[string]string{"team": "a"}})
			},
			map[string]string{InstanceLabel: ValueTrue}, map[string]string{InstanceAnnotation: hostA, JoiningAnnotation: ValueTrue}, true,
		},
		"its Node was not deleted": {
			func(s *scene) {
				s.isNode()
				kept(s, KeptNode{Name: "win-a", UID: "uid-win-a", Address: hostA, Labels: map[string]string{"team": "a"}})
			},
			map[string]string{InstanceLabel: ValueTrue}, map[string]string{InstanceAnnotation: hostA, JoiningAnnotation: ValueTrue}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			tt.scene(s)
			if got := described(s.join(hostA)); got != labelled {
				t.Error(got)
			}
			n, key := s.node("win-a"), hostKey(t, keyA)
			labels := map[string]string{corev1.LabelOSStable: "windows", RoleLabel: ""}
			annotations := map[string]string{
				keys.HashAnnotation: keys.HashPublicKey(s.publicKey()), hosts.PinAnnotation: hosts.EncodeKey(key), hosts.PinTypeAnnotation: key.Type(),
			}
			for k, v := range tt.labels {
				labels[k] = v
			}
			for k, v := range tt.annotations {
				if annotations[k] = v; v == "" {
					delete(annotations, k) // the Machine has another record, without a key
				}
			}
			account := n.Annotations[UsernameAnnotation]
			delete(n.Annotations, UsernameAnnotation)
			if diff := cmp.Diff([]any{labels, annotations, tt.cordoned}, []any{n.Labels, n.Annotations, n.Spec.Unschedulable}); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			private, _, err := s.joiner.Login.PrivateKey(t.Context())
			must(t, err)
			if got, err := username.DecryptName(account, private.SecretText()); tt.labels != nil && (err != nil || got != "Administrator") {
				t.Errorf("the account is %q, %v", got, err)
			}
			if did := s.network.at[hostA].did; len(did) > 0 {
				t.Errorf("done on the host: %v", did)
			}
			// The same again writes nothing, and forgets what was set again.
			before := n.ResourceVersion
			p := s.join(hostA)
			cm, err := s.joiner.RejoiningNodes().ReadEntries(t.Context())
			must(t, err)
			if n = s.node("win-a"); n.ResourceVersion != before || described(p) == labelled || tt.labels["team"] == "a" && len(cm.Data) > 0 {
				t.Errorf("the second time: %s, %s, kept %v", described(p), n.ResourceVersion, cm.Data)
			}
		})
	}
}

// TestAJoiningNodeIsFollowedUntilItIsWhole: the status has what it waits for, and its cordon is lifted when nothing is left.
func TestAJoiningNodeIsFollowedUntilItIsWhole(t *testing.T) {
	const (
		waits  = "Joining Completing: waiting for the node: "
		silent = "Joining Completing: waiting for the first report of the node agent"
		apply  = "apply --max-impact reboot --reboot --confirm-within 2m0s --wait 30s"
	)
	pending := func(s *scene) { n := s.host(hostA); n.Facts.Networks, n.Facts.Endpoints = nil, nil }
	for name, tt := range map[string]struct {
		report func(*scene)
		want   string
		// did is what was done on the host.
		did string
	}{
		"its agent does not report yet": {
			func(*scene) {}, silent, apply,
		},
		"it lacks executables, which its agent cannot fetch": {
			func(s *scene) { s.publish(published.Report{State: published.StatePayloadMissing}) }, silent, apply,
		},
		"its agent is silent": {
			func(s *scene) {
				s.publish(s.applied(), func(n *corev1.Node) {
					n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(noon().Add(time.Hour))
				})
			}, silent, apply,
		},
		"another host answers": {
			func(s *scene) { s.network.at[hostA].facts.HostName = "WIN-Z" },
			refused(ReasonNotTheHost,
				`the host at 10.0.140.21 reports that it is node "win-z", and the operator knows it as node win-a; nothing was changed on it`,
				"check which host has the address 10.0.140.21; if the computer was renamed, restore its name"), "",
		},
		"it has an older bundle": {
			func(s *scene) { s.publish(published.Report{State: published.StateApplying}) }, waits + "its bundle is not applied yet (Updating)", "",
		},
		"it has no subnet": {
			func(s *scene) { s.host(hostA).Subnet = ""; pending(s); s.publish(s.applied()) }, waits + "the cluster network has not assigned its subnet yet", "",
		},
		"its network is not there": {
			func(s *scene) { pending(s); s.publish(s.applied()) }, waits + "its overlay network is being set up", "",
		},
		"its kubelet is not Ready": {
			func(s *scene) {
				s.publish(s.applied(), func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse })
			},
			waits + "its kubelet is not Ready yet", "",
		},
		"its network is there, and its bundle is older": {
			func(s *scene) {
				now := s.host(hostA).Facts
				pending(s)
				s.publish(s.applied())
				s.host(hostA).Facts = now
			}, waits + "its newest bundle is about to be published", "",
		},
		"it was rolled back": {
			func(s *scene) {
				s.publish(published.Report{State: published.StateRolledBack, Message: "containerd does not start"})
			},
			refused(ReasonRolledBack, "containerd does not start", "correct the inputs that caused this; the node applies the corrected bundle at once. To try the same bundle again: "+
				`wmco retry win-a`), "",
		},
		"all is there": {func(s *scene) { s.publish(s.applied()) }, "Joined Joined: node win-a has joined", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.isNode(ready)
			s.join(hostA)
			tt.report(s)
			p := s.join(hostA)
			if diff := cmp.Diff(tt.want, described(p)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			did := ""
			if list := s.network.at[hostA].did; len(list) > 0 {
				did = list[0]
			}
			n, whole := s.node("win-a"), p.State == StateJoined
			marked := n.Annotations[VersionAnnotation] == version && n.Annotations[JoiningAnnotation] == ""
			if did != tt.did || p.Node != "win-a" || p.Finished != whole || n.Spec.Unschedulable == whole || marked != whole {
				t.Errorf("%+v, done %q, cordoned %t", p, did, n.Spec.Unschedulable)
			}
			if counted := len(s.counted.nodes) == 1 && s.counted.nodes[0] == "Instance 10m0s"; counted != whole {
				t.Errorf("counted %v", s.counted.nodes)
			}
			if !whole {
				return
			}
			if p := s.join(hostA); p.State != StateJoined || p.Finished || p.Again != 0 {
				t.Errorf("afterwards: %+v", p)
			}
		})
	}
}

// TestWhatComesBeforeAMachineJoinsIsDoneAgain after an error: later, nobody sees that its Node has joined just now.
func TestWhatComesBeforeAMachineJoinsIsDoneAgain(t *testing.T) {
	s := newScene(t)
	s.onlyMachine("m")
	s.isNode(ready)
	s.addRecord(record.New(record.OfMachine("uid-m")).WithAcceptedKey(s.publicKey(), recordKey()))
	var asked []string
	fails := errAPIServer
	s.joiner.BeforeMachineJoins = func(_ context.Context, machine string) error {
		asked = append(asked, fmt.Sprintf("%s, joined: %t", machine, s.node("win-a").Annotations[VersionAnnotation] == version))
		return fails
	}
	s.join(hostA)
	s.publish(s.applied())
	if p, err := s.joiner.JoinHost(t.Context(), Ref{Machine: "m"}); !errors.Is(err, errAPIServer) || p.State == StateJoined {
		t.Errorf("it fails: %+v, %v", p, err)
	}
	fails = nil
	if p := s.join(hostA); p.State != StateJoined || !p.Finished {
		t.Errorf("afterwards: %+v", p)
	}
	s.join(hostA)
	if diff := cmp.Diff([]string{"m, joined: false", "m, joined: false"}, asked); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestAnInterruptedRunOfANodeIsConfirmed where its bundle cannot be applied: another operator has begun it.
func TestAnInterruptedRunOfANodeIsConfirmed(t *testing.T) {
	for name, fails := range map[string]error{"the host answers": nil, "the host cannot be reached": errAPIServer} {
		s := newScene(t)
		s.isNode(ready)
		s.join(hostA)
		s.publish(published.Report{State: published.StateFailed, Message: "another run", Fault: published.FaultDisk})
		host := s.network.at[hostA]
		host.interrupted, host.fails = bundle.Of([]byte("run")), fails
		p := s.join(hostA)
		if p.State != StateFailed || p.Message != "another run" || (host.confirmed == host.interrupted) != (fails == nil) {
			t.Errorf("%s: %+v, confirmed %s", name, p, host.confirmed)
		}
	}
}

// TestANewNodeStaysCordonedUntilItsImagesAreThere.
func TestANewNodeStaysCordonedUntilItsImagesAreThere(t *testing.T) {
	s := newSceneOf(t, imagesCluster)
	s.isNode(ready)
	s.join(hostA)
	report := s.applied()
	list := imageList(s.desiredBundle().Bundle.Bundle)
	report.Features = append(report.Features, published.FeaturePinnedImages)
	for present, want := range []string{
		"Joining Completing: the node stays cordoned until its pinned images are pulled: 0 of 2",
		"Joining Completing: the node stays cordoned until its pinned images are pulled: 1 of 2",
		"Joined Joined: node win-a has joined",
	} {
		report.Images = published.ImageProgress{List: list, Wanted: 2, Present: present}
		s.publish(report)
		p := s.join(hostA)
		if got := described(p); got != want || s.node("win-a").Spec.Unschedulable != (p.State == StateJoining) || p.Node != "win-a" {
			t.Errorf("%d of 2: %s, node %q", present, got, p.Node)
		}
	}
}

// TestTheCordonOfAnAdministratorIsNotLifted when the node has joined.
func TestTheCordonOfAnAdministratorIsNotLifted(t *testing.T) {
	s := newScene(t)
	s.isNode(ready, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	s.join(hostA)
	s.publish(s.applied())
	if p := s.join(hostA); p.State != StateJoined || !s.node("win-a").Spec.Unschedulable {
		t.Errorf("%s, cordoned %t", described(p), s.node("win-a").Spec.Unschedulable)
	}
}
