package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// publication is the annotation of a Node for a bundle.
func publication(t *testing.T, text string) published.Desired {
	t.Helper()
	var layers [2]published.Packed
	for i, kind := range []bundle.LayerKind{bundle.LayerCluster, bundle.LayerNode} {
		l := bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined}
		l.Directories = []bundle.Directory{{Path: `C:\k\` + string(kind) + text, Access: bundle.AccessUsers}}
		p, err := published.Pack(l)
		if err != nil {
			t.Fatal(err)
		}
		layers[i] = p
	}
	whole, err := bundle.DigestLayers(layers[0].Digest, layers[1].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return published.Desired{Bundle: whole, MaxImpact: restart, Namespace: "n", Cluster: layers[0].Layer, Node: layers[1].Layer}
}

// unsigned publishes without signatures.
func unsigned(node corev1.Node, wanted published.Desired) Source {
	return Source{Wanted: wanted, Signed: windowsnode.Decode(node).Desired, Sign: published.Desired.Encode}
}

func windowsNode() corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "win-a", Labels: map[string]string{corev1.LabelWindowsBuild: "10.0.20348"}, Annotations: map[string]string{}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ago(60))},
			{Type: published.Condition, LastTransitionTime: metav1.NewTime(ago(50)), LastHeartbeatTime: metav1.NewTime(ago(5))},
		}},
	}
}

// TestATurnOnANode writes each step on a Node object and reads it back, from one bundle to another that needs a boot.
func TestATurnOnANode(t *testing.T) {
	object, old, wanted := windowsNode(), publication(t, "old"), publication(t, "new")
	text, err := old.Encode()
	if err != nil {
		t.Fatal(err)
	}
	object.Annotations[published.DesiredAnnotation] = text
	report := func(s published.State, d bundle.Digest) {
		if object.Annotations[published.ReportAnnotation], err = (published.Report{State: s, Desired: d}).Encode(); err != nil {
			t.Fatal(err)
		}
	}
	report(published.StateApplied, old.Bundle)
	p := policy()
	p.Canaries = 0
	now, moved := noon(), false
	var made []Action
	for range 20 {
		n := observeUnverified(object)
		n.Wanted, n.Cost = wanted.Bundle, reboot
		n.Drained = moved
		plan := stamped(Fleet{Nodes: []Node{n}, Policy: p, Now: now})
		if len(plan.Steps) == 0 {
			break
		}
		s := plan.Steps[0]
		made = append(made, s.Action)
		moved = s.Action == ActionDrain
		if err := s.EditNode(&object, unsigned(object, wanted)); err != nil {
			t.Fatal(err)
		}
		switch s.Action { //nolint:exhaustive // the others change nothing else
		case ActionReserve:
			if !object.Spec.Unschedulable || object.Annotations[published.CordonAnnotation] != published.CordonedForRollout || object.Annotations[windowsnode.ScaleDownAnnotation] != "true" {
				t.Errorf("taken: %+v", object)
			}
		case ActionPublish:
			report(published.StateApplied, wanted.Bundle)
		}
		now = now.Add(time.Minute)
	}
	if diff := cmp.Diff([]Action{ActionReserve, ActionConfirmReservation, ActionDrain, ActionPublish, ActionRelease}, made); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	n := observeUnverified(object)
	if n.Unschedulable || n.CordonedFor != "" || n.ScaleDownDisabled || n.Published != wanted.Bundle || n.Permitted != restart || n.Group.OSBuild != "10.0.20348" || !n.Ready {
		t.Errorf("%+v", n)
	}
}

// observeUnverified takes what a Node says for what the operator has written.
func observeUnverified(object corev1.Node) Node {
	n := windowsnode.Decode(object)
	return ObserveNode(n, n.Desired, n.DesiredError)
}

func TestObserve(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*corev1.Node)
		ok     func(Node) bool
	}{
		"healthy":                   {func(*corev1.Node) {}, func(n Node) bool { return n.Ready && n.Leaving == "" && !n.Paused && n.Foreign == "" }},
		"removed by the autoscaler": {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: windowsnode.ToBeDeletedTaint}} }, func(n Node) bool { return n.Leaving != "" }},
		"being deleted":             {func(n *corev1.Node) { at := metav1.NewTime(ago(1)); n.DeletionTimestamp = &at }, func(n Node) bool { return n.Leaving != "" }},
		"paused without a value":    {func(n *corev1.Node) { n.Annotations[published.PausedAnnotation] = "" }, func(n Node) bool { return n.Paused }},
		"joining":                   {func(n *corev1.Node) { n.Annotations[published.JoiningAnnotation] = "true" }, func(n Node) bool { return n.Joining && n.Leaving == "" }},
		"being removed": {func(n *corev1.Node) {
			n.Annotations[published.JoiningAnnotation], n.Annotations[published.VersionAnnotation] = "true", "v1"
		}, func(n Node) bool { return !n.Joining && n.Leaving != "" }},
		"a damaged state":                 {func(n *corev1.Node) { n.Annotations[published.RolloutAnnotation] = "{" }, func(n Node) bool { return n.Foreign == "" && n.State.Slot.IsZero() }},
		"a state of a newer operator":     {func(n *corev1.Node) { n.Annotations[published.RolloutAnnotation] = `{"schema":2}` }, func(n Node) bool { return n.Foreign != "" }},
		"a desired bundle of a newer one": {func(n *corev1.Node) { n.Annotations[published.DesiredAnnotation] = `{"schema":9}` }, func(n Node) bool { return n.Foreign != "" }},
		"the build of the facts": {func(n *corev1.Node) {
			n.Labels = nil
			n.Annotations[published.ReportAnnotation] = `{"schema":1,"state":"Applied","facts":{"schema":1,"osBuild":"10.0.17763"}}`
		}, func(n Node) bool { return n.Group.OSBuild == "10.0.17763" }},
	} {
		object := windowsNode()
		tt.change(&object)
		if n := observeUnverified(object); !tt.ok(n) {
			t.Errorf("%s: %+v", name, n)
		}
	}
}

func TestOtherLayersAreNotPublished(t *testing.T) {
	object, wanted := windowsNode(), publication(t, "new")
	s := Step{Action: ActionPublish, Bundle: digest(1, "a"), Permit: none}
	if err := s.EditNode(&object, unsigned(object, wanted)); err == nil || len(object.Annotations) > 0 {
		t.Errorf("%v: %v", err, object.Annotations)
	}
}

// TestABundleIsPublishedForOneNode: a Node that was made again under its name gets its own, although the bundle is the same.
func TestABundleIsPublishedForOneNode(t *testing.T) {
	object, told := windowsNode(), publication(t, "same")
	object.UID = "second"
	told.NodeName, told.NodeUID = object.Name, "first"
	s := Step{Action: ActionPublish, Bundle: told.Bundle, Permit: told.MaxImpact}
	if err := s.EditNode(&object, Source{Wanted: told, Signed: told, Sign: published.Desired.Encode}); err != nil {
		t.Fatal(err)
	}
	if d := windowsnode.Decode(object).Desired; d.NodeName != "win-a" || d.NodeUID != "second" {
		t.Errorf("it is for Node %q with UID %q", d.NodeName, d.NodeUID)
	}
}

func TestTarget(t *testing.T) {
	layer := func(argv ...string) bundle.Layer {
		return bundle.Layer{Stage: bundle.StageJoined, Services: []bundle.Service{{Name: "kubelet", Argv: argv}}, Files: []bundle.File{{Path: `C:\k\cni.conf`, Digest: bundle.Of([]byte(argv[0]))}}}
	}
	c := digest(1, "cluster")
	base := TargetDigest(c, layer("kubelet.exe", "--node-ip=10.0.0.1", "--v", "2"))
	if got := TargetDigest(c, layer("other.exe", "--node-ip=10.0.0.2", "--v", "3")); got != base {
		t.Error("the values of a node make another target")
	}
	for name, got := range map[string]bundle.Digest{
		"another cluster layer": TargetDigest(digest(2, "cluster"), layer("kubelet.exe", "--node-ip=10.0.0.1", "--v", "2")),
		"another flag":          TargetDigest(c, layer("kubelet.exe", "--node-ip=10.0.0.1", "--v", "2", "--cloud-provider=external")),
		"another entry": TargetDigest(c, func() bundle.Layer {
			l := layer("kubelet.exe", "--node-ip=10.0.0.1", "--v", "2")
			l.HostName = bundle.HostName{Name: "win-a"}
			return l
		}()),
	} {
		if got == base {
			t.Errorf("%s is the same target", name)
		}
	}
}

// TestAPermissionThatWasNotUsedInTimeIsGivenAgain: after another drain, and on a node that is joining at once.
func TestAPermissionThatWasNotUsedInTimeIsGivenAgain(t *testing.T) {
	expired := func(joining bool) Node {
		n := Node{Name: "win-a", Ready: true, Wanted: digest(1, "b"), Published: digest(1, "b"), Permitted: reboot, Joining: joining}
		n.Report = published.Report{State: published.StateNeedsPermission, Desired: n.Published, Applied: digest(1, "a"), Impact: reboot, Expired: true}
		n.Cost = reboot
		return n
	}
	next := func(n Node) Step {
		p := policy()
		p.Canaries = 0
		plan := stamped(Fleet{Nodes: []Node{n}, Policy: p, Now: noon()})
		if len(plan.Steps) != 1 {
			t.Fatalf("%+v", plan.Nodes)
		}
		return plan.Steps[0]
	}
	if s := next(expired(true)); s.Action != ActionPermit || s.Permit != reboot || !s.Again {
		t.Errorf("joining: %+v", s)
	}
	n := expired(false)
	n.State.Slot, n.Unschedulable, n.CordonedFor = Slot{Taken: ago(1), Held: true}, true, published.CordonedForRollout
	if s := next(n); s.Action != ActionDrain {
		t.Errorf("not drained: %+v", s)
	}
	n.Drained = true
	if s := next(n); s.Action != ActionPermit || s.Permit != reboot || !s.Again {
		t.Errorf("drained: %+v", s)
	}
	n.Report.Expired = false
	if plan := stamped(Fleet{Nodes: []Node{n}, Policy: policy(), Now: noon()}); len(plan.Steps) > 0 && plan.Steps[0].Again {
		t.Errorf("a permission that holds is given again: %+v", plan.Steps)
	}
}
