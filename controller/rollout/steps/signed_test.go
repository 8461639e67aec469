package steps

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/keys/signing"
	"wmco/controller/layers"
	"wmco/controller/rollout/drains"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/heartbeat"
)

// notary is that of an operator which has begun in an empty cluster.
func notary(t testing.TB) *signing.Keys {
	t.Helper()
	c := fake.NewClientBuilder().Build()
	k := &signing.Keys{Live: c, Client: c, Namespace: namespace, Now: time.Now}
	if err := k.BeginTerm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

// executorOf returns an executor that has begun, with the Node win-1, which has a bundle of an operator.
func executorOf(t *testing.T) (*Executor, layers.Wanted, corev1.Node) {
	t.Helper()
	has := rendered(t, "has", bundle.ImpactRestart)
	e := &Executor{Notary: notary(t), Namespace: namespace, Now: time.Now, Elapsed: heartbeat.MonotonicClock(clock.RealClock{}), Heartbeats: windowsnode.SilenceByKubelet, Drains: &drains.Drains{}, Layers: cacheOf()}
	return e, has, signedNode(t, e, has, reportOf(has))
}

// signedNode is the Node as this operator has told it, with the report of its agent.
func signedNode(t *testing.T, e *Executor, w layers.Wanted, sent published.Report) corev1.Node {
	t.Helper()
	text, err := e.Notary.SignDesired(published.NodeID{Name: "win-1"}, w.DesiredAnnotation(namespace, bundle.ImpactRestart))
	if err != nil {
		t.Fatal(err)
	}
	return nodeThatSays(t, text, sent)
}

func nodeThatSays(t *testing.T, desired string, sent published.Report) corev1.Node {
	t.Helper()
	report, err := sent.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1", Annotations: map[string]string{published.DesiredAnnotation: desired, published.ReportAnnotation: report}}}
}

// seen is what the executor decides from.
func (e *Executor) seen(t *testing.T, node corev1.Node, w layers.Wanted, find func(bundle.Layer) (Urgent, error)) (plan.Node, snapshot) {
	t.Helper()
	e.Nodes = fake.NewClientBuilder().Build()
	v, err := e.observeFleet(t.Context(), map[string]windowsnode.Node{node.Name: windowsnode.Decode(node)}, Rendered{Wanted: map[string]layers.Wanted{node.Name: w}, Urgent: find})
	if err != nil {
		t.Fatal(err)
	}
	return v.Nodes[0], v
}

// TestWhatTheOperatorDidNotSignCountsAsNothing: others may write the annotation of a Node, and the operator goes by what it has signed.
func TestWhatTheOperatorDidNotSignCountsAsNothing(t *testing.T) {
	e, has, node := executorOf(t)
	if n, _ := e.seen(t, node, has, nil); n.Published != has.Bundle || n.Permitted != bundle.ImpactRestart {
		t.Fatalf("%+v", n)
	}
	plain, err := has.DesiredAnnotation(namespace, bundle.ImpactReboot).Encode()
	if err != nil {
		t.Fatal(err)
	}
	other, err := e.Notary.SignDesired(published.NodeID{Name: "win-2"}, has.DesiredAnnotation(namespace, bundle.ImpactReboot))
	if err != nil {
		t.Fatal(err)
	}
	before, err := e.Notary.SignDesired(published.NodeID{Name: "win-1", UID: "of-before"}, has.DesiredAnnotation(namespace, bundle.ImpactReboot))
	if err != nil {
		t.Fatal(err)
	}
	signed := node.Annotations[published.DesiredAnnotation]
	for name, text := range map[string]string{
		"not signed": plain, "of another node": other, "of an earlier Node of the name": before, "changed": strings.Replace(signed, `"maxImpact":"restart"`, `"maxImpact":"reboot"`, 1), "nothing": "",
	} {
		if n, _ := e.seen(t, nodeThatSays(t, text, reportOf(has)), has, nil); n.Published != "" || n.Permitted != "" {
			t.Errorf("%s: %s with %s counts", name, n.Published.Short(), n.Permitted)
		}
	}
}

// TestAnEarlierAnnotationCountsAsNothing: that of this process by its counter, that of an earlier one when the agent refuses it.
func TestAnEarlierAnnotationCountsAsNothing(t *testing.T) {
	e, has, earlier := executorOf(t)
	e.seen(t, earlier, has, nil)
	next := rendered(t, "next", bundle.ImpactRestart)
	e.seen(t, signedNode(t, e, next, reportOf(has)), next, nil)
	if n, _ := e.seen(t, earlier, next, nil); n.Published != "" {
		t.Error("what was signed before counts")
	}
	// A process that has just begun knows no counter.
	e.memory = memory{}
	if n, _ := e.seen(t, earlier, has, nil); n.Published != has.Bundle {
		t.Error("what is signed does not count after a restart")
	}
	text := earlier.Annotations[published.DesiredAnnotation]
	sent := published.Report{State: published.StateFailed, Desired: has.Bundle, Refused: bundle.Of([]byte(text)), Features: published.Features()}
	if n, _ := e.seen(t, nodeThatSays(t, text, sent), has, nil); n.Published != "" {
		t.Error("what the agent refuses counts")
	}
	refused := nodeThatSays(t, text, sent)
	after, publish := refused.DeepCopy(), plan.Step{Node: "win-1", Action: plan.ActionPublish, Bundle: has.Bundle, Permit: bundle.ImpactRestart}
	if err := publish.EditNode(after, e.sourceOfStep(nodeStep{Step: publish, node: windowsnode.Decode(refused), wanted: &has})); err != nil || after.Annotations[published.DesiredAnnotation] == text {
		t.Errorf("what the agent refuses is not signed again, because its contents are the wanted ones: %v", err)
	}
	e.memory.ofNode("win-1").text = bundle.Of([]byte(text))
	if n, _ := e.seen(t, nodeThatSays(t, text, sent), has, nil); n.Published != has.Bundle {
		t.Error("what this process has written is written again and again")
	}
}

// TestAStepThatKeepsTheAnnotationHasNotWrittenIt: if the agent refuses it, the operator signs it again.
func TestAStepThatKeepsTheAnnotationHasNotWrittenIt(t *testing.T) {
	p := newPlane(t)
	has := rendered(t, "has", bundle.ImpactRestart)
	p.node("win-kept", has)
	keep := plan.Step{Node: "win-kept", Action: plan.ActionPublish, Bundle: has.Bundle, Permit: bundle.ImpactRestart}
	if did := p.do(keep, p.now("win-kept"), has); did.err != nil || p.memory.ofNode("win-kept").text == "" {
		t.Fatalf("%v", did.err)
	}
	p.memory = memory{} // the operator starts again
	before := p.now("win-kept")
	keep.State.Failed = has.Bundle
	did := p.do(keep, before, has)
	after := p.now("win-kept")
	if did.err != nil || !did.written || after.Annotations[published.DesiredAnnotation] != before.Annotations[published.DesiredAnnotation] || p.memory.ofNode("win-kept").text != "" {
		t.Errorf("%v, written %t: %s", did.err, did.written, p.memory.ofNode("win-kept").text)
	}
}

// TestAnOlderAgentInItsTurnKeepsWhatItWasTold: it acts on it. Nothing of it is signed.
func TestAnOlderAgentInItsTurnKeepsWhatItWasTold(t *testing.T) {
	e, has, _ := executorOf(t)
	plain, err := has.DesiredAnnotation(namespace, bundle.ImpactReboot).Encode()
	if err != nil {
		t.Fatal(err)
	}
	state, err := plan.State{Slot: plan.Slot{Taken: time.Now(), Held: true}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	sent := published.Report{State: published.StateApplying, Desired: has.Bundle}
	node := nodeThatSays(t, plain, sent)
	node.Annotations[published.RolloutAnnotation] = state
	next := rendered(t, "next", bundle.ImpactRestart)
	if n, _ := e.seen(t, node, next, nil); n.Published != has.Bundle || n.Permitted != bundle.ImpactReboot {
		t.Errorf("%+v", n)
	}
	release := plan.Step{Node: "win-1", Action: plan.ActionRelease, Bundle: has.Bundle, Permit: bundle.ImpactRestart}
	after := node.DeepCopy()
	if err := release.EditNode(after, e.sourceOfStep(nodeStep{Step: release, node: windowsnode.Decode(node), wanted: &next})); err != nil || after.Annotations[published.DesiredAnnotation] != plain {
		t.Errorf("%v: %s", err, after.Annotations[published.DesiredAnnotation])
	}
	publish := release
	publish.Action = plan.ActionPublish
	if err := publish.EditNode(node.DeepCopy(), e.sourceOfStep(nodeStep{Step: release, node: windowsnode.Decode(node), wanted: &next})); err == nil {
		t.Error("what is not signed was signed")
	}
	sent.Features = published.Features()
	node = nodeThatSays(t, plain, sent)
	node.Annotations[published.RolloutAnnotation] = state
	if n, _ := e.seen(t, node, next, nil); n.Published != "" {
		t.Error("an agent of this version acts on what is not signed")
	}
}

// TestAPermissionThatOthersReplaceIsSignedAgain: the host of a drained node may be booting by it, whatever its agent refuses since.
func TestAPermissionThatOthersReplaceIsSignedAgain(t *testing.T) {
	e, has, earlier := executorOf(t)
	id, boot, taken := published.NodeID{Name: "win-1"}, bundle.Of([]byte("now")), time.Now().UTC().Truncate(time.Second)
	permitted := has.DesiredAnnotation(namespace, bundle.ImpactReboot)
	permitted.Boot = boot
	signed, err := e.Notary.SignDesired(id, permitted)
	if err != nil {
		t.Fatal(err)
	}
	permitted.Boot = bundle.Of([]byte("forged"))
	forged, err := permitted.Encode()
	if err != nil {
		t.Fatal(err)
	}
	state, err := plan.State{
		Turn: plan.Turn{Bundle: has.Bundle, Impact: bundle.ImpactReboot, Boot: boot, Begun: taken, Permitted: taken},
		Slot: plan.Slot{Taken: taken, Held: true},
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	next := func(text string, sent published.Report) ([]plan.Step, corev1.Node) {
		t.Helper()
		sent.Features = published.Features()
		node := nodeThatSays(t, text, sent)
		node.Annotations[published.RolloutAnnotation], node.Annotations[published.CordonAnnotation] = state, published.CordonedForRollout
		node.Spec.Unschedulable = true
		_, v := e.seen(t, node, has, nil)
		v.Policy.Timeout, v.Nodes[0].Drained = time.Hour, true
		return plan.NextSteps(v.Fleet).Steps, node
	}
	if steps, _ := next(signed, reportOf(has)); len(steps) > 0 {
		t.Fatalf("its annotation is there: %+v", steps)
	}
	for name, text := range map[string]string{"forged": forged, "removed": "", "an earlier one": earlier.Annotations[published.DesiredAnnotation]} {
		refused := published.Report{State: published.StateFailed, Desired: has.Bundle, Applied: has.Bundle, Refused: bundle.Of([]byte(text))}
		for _, sent := range []published.Report{reportOf(has), refused} {
			steps, node := next(text, sent)
			if len(steps) != 1 {
				t.Errorf("%s: %+v", name, steps)
				continue
			}
			if err := steps[0].EditNode(&node, e.sourceOfStep(nodeStep{Step: steps[0], node: windowsnode.Decode(node), wanted: &has})); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			d, err := e.Notary.OpenDesired(id, node.Annotations[published.DesiredAnnotation])
			if err != nil || d.Boot != boot || d.MaxImpact != bundle.ImpactReboot || !node.Spec.Unschedulable {
				t.Errorf("%s: it is told %+v (%v), cordoned %t", name, d, err, node.Spec.Unschedulable)
			}
		}
	}
}

// TestNothingUrgentIsMadeOfWhatANodeSays: an urgent layer is signed together with the rest of the node's bundle. So the operator must have told
// the node of that.
func TestNothingUrgentIsMadeOfWhatANodeSays(t *testing.T) {
	e, has, node := executorOf(t)
	next := rendered(t, "next", bundle.ImpactRestart)
	find := func(l bundle.Layer) (Urgent, error) {
		l.Files = slices.Clone(l.Files)
		l.Files[0].Impact = bundle.ImpactNone
		return Urgent{Layer: l, Inputs: []plan.UrgentInput{{Name: "a CA"}}}, nil
	}
	e.Layers = cacheOf(has)
	n, v := e.seen(t, node, next, find)
	if n.Urgent.Bundle == "" || v.urgent["win-1"].Own.Digest != has.Own.Digest {
		t.Fatalf("nothing is urgent: %+v", n.Urgent)
	}
	// A user who may patch Nodes has the Node say that it has another bundle, whose layers the operator can read.
	evil := rendered(t, "evil", bundle.ImpactRestart)
	content := *evil.Content
	content.Node.State = []bundle.State{{Path: `C:\var\lib\evil`}}
	packed, err := published.Pack(content.Node)
	if err != nil {
		t.Fatal(err)
	}
	evil.Own, evil.Content = packed, &content
	if evil.Bundle, err = bundle.DigestLayers(evil.Cluster.Digest, packed.Digest); err != nil {
		t.Fatal(err)
	}
	for _, x := range []layers.Wanted{evil} {
		e.Layers = cacheOf(x)
		text, err := x.DesiredAnnotation(namespace, bundle.ImpactRestart).Encode()
		if err != nil {
			t.Fatal(err)
		}
		n, v := e.seen(t, nodeThatSays(t, text, reportOf(x)), next, find)
		if n.Cost == "" {
			t.Error("the layers cannot be read: the case proves nothing")
		}
		if n.Urgent.Bundle != "" || len(v.urgent) > 0 {
			t.Error("what others have written would be signed")
		}
	}
	// The node's earlier bundle is still known, while its report has it.
	e.Layers = cacheOf(has)
	e.seen(t, node, next, find)
	if n, _ := e.seen(t, nodeThatSays(t, "", reportOf(has)), next, find); n.Urgent.Bundle == "" {
		t.Error("whoever removes the annotation keeps the node from what is urgent")
	}
}

// TestTheSameIsNotSignedAgain: a step that changes nothing writes nothing, but for a permission that is given again.
func TestTheSameIsNotSignedAgain(t *testing.T) {
	e, has, node := executorOf(t)
	text := node.Annotations[published.DesiredAnnotation]
	s := plan.Step{Node: "win-1", Action: plan.ActionPermit, Bundle: has.Bundle, Permit: bundle.ImpactRestart}
	source := func() plan.Source {
		return e.sourceOfStep(nodeStep{Step: s, node: windowsnode.Decode(node), wanted: &has, permitFor: time.Hour})
	}
	after := node.DeepCopy()
	if err := s.EditNode(after, source()); err != nil || after.Annotations[published.DesiredAnnotation] != text {
		t.Errorf("%v: it is written again", err)
	}
	s.Again = true
	if err := s.EditNode(after, source()); err != nil || after.Annotations[published.DesiredAnnotation] == text {
		t.Errorf("%v: it is not given again", err)
	}
	s.Again, s.Permit = false, bundle.ImpactReboot
	node.UID, after.UID = "1-2-3", "1-2-3"
	if err := s.EditNode(after, source()); err != nil {
		t.Fatal(err)
	}
	d, err := e.Notary.OpenDesired(published.NodeID{Name: "win-1", UID: "1-2-3"}, after.Annotations[published.DesiredAnnotation])
	if err != nil || d.PermitFor != 3600 || d.NodeName != "win-1" || d.NodeUID != "1-2-3" || d.MaxImpact != bundle.ImpactReboot {
		t.Errorf("%+v, %v", d, err)
	}
}

var _ Notary = (*signing.Keys)(nil)

// TestANodeThatWasToldToEndIsToldNothingElse, also where others put an earlier annotation back, or its agent refuses the removal. Another Node of the same name
// is told everything.
func TestANodeThatWasToldToEndIsToldNothingElse(t *testing.T) {
	e, has, earlier := executorOf(t)
	earlier.UID = "uid-a"
	text, err := e.Notary.SignDesired(published.NodeID{Name: "win-1", UID: "uid-a"}, has.DesiredAnnotation(namespace, bundle.ImpactRestart).ToRemove())
	if err != nil {
		t.Fatal(err)
	}
	joining := func(node corev1.Node, text string) corev1.Node {
		node = *node.DeepCopy()
		node.Annotations[published.JoiningAnnotation], node.Annotations[published.DesiredAnnotation] = "true", text
		return node
	}
	told := earlier.Annotations[published.DesiredAnnotation]
	if n, _ := e.seen(t, joining(earlier, told), has, nil); !n.Joining || n.Removing {
		t.Fatalf("%+v", n)
	}
	refused := nodeThatSays(t, text, published.Report{State: published.StateFailed, Refused: bundle.Of([]byte(text)), Features: published.Features()})
	refused.UID = "uid-a"
	unsigned := strings.Replace(told, `"maxImpact"`, `"remove":true,"maxImpact"`, 1)
	if n, _ := e.seen(t, joining(earlier, unsigned), has, nil); n.Removing {
		t.Error("what is not signed ends the node")
	}
	for name, node := range map[string]corev1.Node{"told": joining(earlier, text), "refused": joining(refused, text)} {
		if n, _ := e.seen(t, node, has, nil); !n.Removing || n.Joining || n.Leaving == "" {
			t.Errorf("%s: %+v", name, n)
		}
	}
	if n, _ := e.seen(t, joining(earlier, told), has, nil); !n.Removing {
		t.Error("an earlier annotation takes it back")
	}
	next := joining(earlier, told)
	next.UID = "uid-b"
	if n, _ := e.seen(t, next, has, nil); n.Removing {
		t.Error("another Node of the name is removed")
	}
}
