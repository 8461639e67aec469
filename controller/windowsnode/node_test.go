package windowsnode

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
)

func noon() time.Time { return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC) }

// desired is a bundle of two layers, and the executables that it was made with.
func desired(t *testing.T, payload bundle.Digest) published.Desired {
	t.Helper()
	var layers [2]published.Packed
	for i, kind := range []bundle.LayerKind{bundle.LayerCluster, bundle.LayerNode} {
		p, err := published.Pack(bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined})
		if err != nil {
			t.Fatal(err)
		}
		layers[i] = p
	}
	whole, err := bundle.DigestLayers(layers[0].Digest, layers[1].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return published.Desired{Bundle: whole, MaxImpact: bundle.ImpactRestart, Namespace: "n", Cluster: layers[0].Layer, Node: layers[1].Layer, Payload: payload}
}

// encoder is what an annotation holds.
type encoder interface{ Encode() (string, error) }

func encode(t *testing.T, e encoder) string {
	t.Helper()
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func annotated(annotations map[string]string) Node {
	return Decode(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a", Annotations: annotations}})
}

func TestDecodeReadsWhatOperatorAndAgentWrote(t *testing.T) {
	d := desired(t, "")
	turn := Turn{Bundle: d.Bundle, Impact: bundle.ImpactRestart, Begun: noon(), Permitted: noon()}
	n := annotated(map[string]string{
		published.DesiredAnnotation: encode(t, d), published.ReportAnnotation: encode(t, published.Report{State: published.StateApplied, Desired: d.Bundle}),
		published.RolloutAnnotation: encode(t, RolloutState{Turn: turn}),
	})
	if n.Name != "win-a" || n.DesiredError != nil || n.ReportError != nil || n.RolloutError != nil {
		t.Fatalf("%v, %v, %v", n.DesiredError, n.ReportError, n.RolloutError)
	}
	if n.Desired.Bundle != d.Bundle || n.Report.Desired != d.Bundle || n.Rollout.Turn != turn {
		t.Errorf("%+v", n)
	}
	if none := annotated(nil); none.DesiredError == nil || none.ReportError == nil || none.RolloutError != nil || !none.Rollout.Slot.IsZero() {
		t.Errorf("nothing: %+v", none)
	}
}

// TestOneDamagedAnnotationLeavesTheOthers: each has its own error.
func TestOneDamagedAnnotationLeavesTheOthers(t *testing.T) {
	d := desired(t, "")
	good := map[string]string{
		published.DesiredAnnotation: encode(t, d), published.ReportAnnotation: encode(t, published.Report{State: published.StateApplied}),
		published.RolloutAnnotation: encode(t, RolloutState{}),
	}
	for key := range good {
		one := map[string]string{}
		for other, text := range good {
			one[other] = text
		}
		one[key] = "{"
		n := annotated(one)
		for other, err := range map[string]error{published.DesiredAnnotation: n.DesiredError, published.ReportAnnotation: n.ReportError, published.RolloutAnnotation: n.RolloutError} {
			if (err != nil) != (other == key) {
				t.Errorf("%s is damaged, and the error of %s is %v", key, other, err)
			}
		}
	}
}

// TestDecodeAfterDecodesWhatHasChanged: the result is that of Decode, whichever annotation has changed, and what has not changed is taken over.
func TestDecodeAfterDecodesWhatHasChanged(t *testing.T) {
	d, other := desired(t, ""), desired(t, "p")
	texts := map[string][2]string{
		published.DesiredAnnotation: {encode(t, d), encode(t, other)},
		published.ReportAnnotation:  {encode(t, published.Report{State: published.StateApplied, Desired: d.Bundle}), encode(t, published.Report{State: published.StateFailed})},
		published.RolloutAnnotation: {encode(t, RolloutState{Failed: d.Bundle}), encode(t, RolloutState{})},
	}
	node := func(changed, text string) corev1.Node {
		all := map[string]string{}
		for key, text := range texts {
			all[key] = text[0]
		}
		all[changed] = text
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a", Annotations: all}}
	}
	before := Decode(node("other", ""))
	for key, text := range texts {
		for _, now := range []string{text[0], text[1], "{", ""} {
			object := node(key, now)
			object.Spec.Unschedulable, object.Status.Conditions = true, []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			got, want := DecodeAfter(before, object), Decode(object)
			if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b error) bool { return (a == nil) == (b == nil) })); diff != "" {
				t.Errorf("%s is %q (-decoded +decoded after):\n%s", key, now, diff)
			}
			if back := DecodeAfter(got, node("other", "")); back.DesiredError != nil || back.Desired.Bundle != d.Bundle || back.ReportError != nil || back.Rollout.Failed != d.Bundle {
				t.Errorf("back from %q: %+v", now, back)
			}
		}
	}
	marked := before
	marked.Desired.Namespace, marked.Report.Message, marked.Rollout.FailedRetry = "mark", "mark", "mark"
	if n := DecodeAfter(marked, node("other", "x")); n.Desired.Namespace != "mark" || n.Report.Message != "mark" || n.Rollout.FailedRetry != "mark" {
		t.Errorf("annotations that have not changed are decoded again: %+v", n)
	}
}

// TestReportsShareWhatIsTheSame: another state of the same host needs no memory for its facts.
func TestReportsShareWhatIsTheSame(t *testing.T) {
	report := func(state published.State, build string) string {
		return encode(t, published.Report{State: state, Facts: &bundle.Facts{HostName: "WIN-A", OSBuild: build}, Features: []published.Feature{published.FeaturePinnedImages}})
	}
	node := func(text string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{published.ReportAnnotation: text}}}
	}
	before := Decode(node(report(published.StateApplying, "10.0.20348")))
	same := DecodeAfter(before, node(report(published.StateApplied, "10.0.20348")))
	if same.Report.State != published.StateApplied || same.Report.Facts != before.Report.Facts || &same.Report.Features[0] != &before.Report.Features[0] {
		t.Errorf("%+v", same.Report)
	}
	other := DecodeAfter(before, node(report(published.StateApplied, "10.0.26100")))
	if other.Report.Facts.OSBuild != "10.0.26100" || before.Report.Facts.OSBuild != "10.0.20348" {
		t.Errorf("%+v", other.Report)
	}
}

func TestPredicates(t *testing.T) {
	const joining, version = published.JoiningAnnotation, published.VersionAnnotation
	kubelet := func(s corev1.ConditionStatus) Node {
		return Decode(corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: s}}}})
	}
	isLost, blank := Node.IsLost, Decode(corev1.Node{})
	for name, tt := range map[string]struct {
		is   func(Node) bool
		yes  []Node
		noes []Node
	}{
		"ready":  {Node.IsReady, []Node{kubelet(corev1.ConditionTrue)}, []Node{kubelet(corev1.ConditionFalse), kubelet(corev1.ConditionUnknown), blank}},
		"lost":   {isLost, []Node{kubelet(corev1.ConditionUnknown)}, []Node{kubelet(corev1.ConditionFalse), kubelet(corev1.ConditionTrue), blank}},
		"paused": {Node.IsPaused, []Node{annotated(map[string]string{published.PausedAnnotation: ""})}, []Node{blank}},
		"joined": {Node.IsJoined, []Node{annotated(map[string]string{version: "1"})}, []Node{blank, annotated(map[string]string{version: "1", joining: "true"})}},
		"scaled down": {
			Node.HasScaleDownTaint, []Node{Decode(corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "os"}, {Key: ToBeDeletedTaint}}}})},
			[]Node{Decode(corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "os"}}}})},
		},
	} {
		for i, n := range tt.yes {
			if !tt.is(n) {
				t.Errorf("%s: %d is not", name, i)
			}
		}
		for i, n := range tt.noes {
			if tt.is(n) {
				t.Errorf("not %s: %d is", name, i)
			}
		}
	}
}

func TestExecutablesAreCopiedBeforeTheirBundleIsPublished(t *testing.T) {
	older, newer := bundle.Of([]byte("older")), bundle.Of([]byte("newer"))
	on := func(payload, copied bundle.Digest) map[string]string {
		return map[string]string{published.DesiredAnnotation: encode(t, desired(t, payload)), published.PayloadAnnotation: string(copied)}
	}
	for name, tt := range map[string]struct {
		annotations map[string]string
		payload     bundle.Digest
		want        bool
	}{
		"another payload":                   {on(older, ""), newer, true},
		"a bundle that does not say":        {on("", ""), newer, true},
		"another one was copied":            {on(older, older), newer, true},
		"it was copied":                     {on(older, newer), newer, false},
		"the bundle has it":                 {on(newer, ""), newer, false},
		"back to the one before":            {on(newer, newer), older, true},
		"an operator without executables":   {on(older, ""), "", false},
		"a node that has just joined":       {nil, newer, false},
		"an annotation that cannot be read": {map[string]string{published.DesiredAnnotation: "{"}, newer, false},
	} {
		if got := annotated(tt.annotations).IsPayloadPending(tt.payload); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestADesiredBundleIsVerifiedForItsNode: who verifies gets which Node it is and the text, who does not gets what was decoded.
func TestADesiredBundleIsVerifiedForItsNode(t *testing.T) {
	d := desired(t, "")
	n := annotated(map[string]string{published.DesiredAnnotation: encode(t, d)})
	n.UID = "1-2-3"
	read := VerifyWith(func(node published.NodeID, text string) (published.Desired, error) {
		if node != (published.NodeID{Name: n.Name, UID: "1-2-3"}) || text != n.Annotations[published.DesiredAnnotation] {
			t.Errorf("%v: %s", node, text)
		}
		return published.Desired{}, published.ErrUnsigned
	})
	if got, err := read(n); err != published.ErrUnsigned || got.Bundle != "" { //nolint:errorlint // it is passed on
		t.Errorf("%v, %v", got, err)
	}
	if n.DesiredError != nil || n.Desired.Bundle != d.Bundle {
		t.Errorf("%v, %v", n.Desired, n.DesiredError)
	}
}
