package rollout

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/windowsnode"
)

// asCached returns an object as an informer cache has it.
func asCached(t testing.TB, o any, kind string) base.Object {
	t.Helper()
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	cached := &unstructured.Unstructured{Object: u}
	cached.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return cached
}

func reportText(t testing.TB, r published.Report) string {
	t.Helper()
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// watchedNode is a Node with something of everything that is compared.
func watchedNode(t testing.TB) *corev1.Node {
	t.Helper()
	since := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "win-1", Labels: map[string]string{"a": "b", published.UpgradingLabel: "true"},
			Annotations: map[string]string{
				published.RolloutAnnotation: "{}", published.PayloadAnnotation: "p", "k8s.ovn.org/hybrid-overlay-node-subnet": "10.132.0.0/24",
				published.ReportAnnotation: reportText(t, published.Report{State: published.StateApplied, Facts: &bundle.Facts{HostName: "WIN-1"}}),
			},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "os", Value: "Windows"}}},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: since, LastTransitionTime: since},
				{Type: published.Condition, Status: corev1.ConditionTrue, LastHeartbeatTime: since, LastTransitionTime: since},
			},
		},
	}
}

// TestWhatAnEventOfANodeChanges: its bundle, whose turn it is, both or neither. What changes its bundle also changes the digest of what that is
// rendered from, which is made of the Node that was listed.
func TestWhatAnEventOfANodeChanges(t *testing.T) {
	later := metav1.NewTime(time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC))
	for _, tt := range []struct {
		name        string
		edit        func(*corev1.Node)
		input, turn bool
	}{
		{"nothing", func(*corev1.Node) {}, false, false},
		{"the kubelet is alive", func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = later }, false, false},
		{"images and the phase", func(n *corev1.Node) {
			n.Status.Phase, n.Status.Images = "other", []corev1.ContainerImage{{SizeBytes: 1}}
		}, false, false},
		{"the operator's own label", func(n *corev1.Node) { delete(n.Labels, published.UpgradingLabel) }, false, false},
		{"a label", func(n *corev1.Node) { n.Labels["a"] = "c" }, true, false},
		{"another label", func(n *corev1.Node) { n.Labels["c"] = "" }, true, false},
		{"a label is removed", func(n *corev1.Node) { delete(n.Labels, "a") }, true, false},
		{"a subnet", func(n *corev1.Node) { n.Annotations["k8s.ovn.org/hybrid-overlay-node-subnet"] = "10.132.1.0/24" }, true, false},
		{"the executables on the host", func(n *corev1.Node) { n.Annotations[published.PayloadAnnotation] = "q" }, true, true},
		{"a confirmation", func(n *corev1.Node) { n.Annotations[published.ConfirmAnnotation] = "pull-secret" }, true, true},
		{"a confirmed finding", func(n *corev1.Node) { n.Annotations[published.ConfirmFindingAnnotation] = "x" }, true, true},
		{"a confirmed removal", func(n *corev1.Node) { n.Annotations[published.RemoveAnnotation] = "x" }, true, true},
		{"an address", func(n *corev1.Node) { n.Status.Addresses[0].Address = "192.0.2.2" }, true, false},
		{"facts", func(n *corev1.Node) {
			n.Annotations[published.ReportAnnotation] = reportText(t, published.Report{State: published.StateApplied, Facts: &bundle.Facts{HostName: "WIN-2"}})
		}, true, true},
		{"features of the agent", func(n *corev1.Node) {
			n.Annotations[published.ReportAnnotation] = reportText(t, published.Report{State: published.StateApplied, Facts: &bundle.Facts{HostName: "WIN-1"}, Features: published.Features()})
		}, true, true},
		{"a report that cannot be read", func(n *corev1.Node) { n.Annotations[published.ReportAnnotation] = "{" }, true, true},
		{"no report", func(n *corev1.Node) { delete(n.Annotations, published.ReportAnnotation) }, true, true},
		{"another state of the agent", func(n *corev1.Node) {
			n.Annotations[published.ReportAnnotation] = reportText(t, published.Report{State: published.StateApplying, Facts: &bundle.Facts{HostName: "WIN-1"}})
		}, false, true},
		{"what the operator has noted", func(n *corev1.Node) { n.Annotations[published.RolloutAnnotation] = `{"schema":1}` }, false, true},
		{"what is published", func(n *corev1.Node) { n.Annotations[published.DesiredAnnotation] = "x" }, false, true},
		{"the autoscaler is told to leave it", func(n *corev1.Node) { n.Annotations[windowsnode.ScaleDownAnnotation] = "true" }, false, true},
		{"a pause", func(n *corev1.Node) { n.Annotations[published.PausedAnnotation] = "" }, false, true},
		{"a cordon", func(n *corev1.Node) { n.Spec.Unschedulable = true }, false, true},
		{"a taint", func(n *corev1.Node) { n.Spec.Taints[0].Value = "x" }, false, true},
		{"the kubelet is lost", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, false, true},
		{"the kubelet was away in between", func(n *corev1.Node) { n.Status.Conditions[0].LastTransitionTime = later }, false, true},
		{"the agent", func(n *corev1.Node) { n.Status.Conditions[1].Status = corev1.ConditionFalse }, false, true},
		{"the agent is gone", func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] }, false, true},
		{"its deletion", func(n *corev1.Node) { n.DeletionTimestamp = &later }, false, true},
	} {
		before, now := watchedNode(t), watchedNode(t)
		tt.edit(now)
		for i, pair := range [][2]*corev1.Node{{before, now}, {now, before}} {
			if got := changesNodeInput(pair[0], pair[1]); got != tt.input {
				t.Errorf("%s, %d: changes the input: %t", tt.name, i, got)
			}
			if got := changesNodeTurn(pair[0], pair[1]); got != tt.turn {
				t.Errorf("%s, %d: changes the turn: %t", tt.name, i, got)
			}
		}
		list := []windowsnode.Node{windowsnode.Decode(*before), windowsnode.Decode(*now)}
		list[1].Name = "now"
		digests := digestsOf(list)
		if got := digests["now"] != digests[before.Name]; got != tt.input {
			t.Errorf("%s: another digest: %t", tt.name, got)
		}
	}
}

// TestWhatAnEventOfAnotherObjectChanges: everything but what the API server maintains.
func TestWhatAnEventOfAnotherObjectChanges(t *testing.T) {
	settings := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: "1", Labels: map[string]string{"a": "b"}}, Data: map[string]string{"k": "v"}}
	}
	for name, tt := range map[string]struct {
		edit        func(*corev1.ConfigMap)
		input, turn bool
	}{
		"its version":    {func(c *corev1.ConfigMap) { c.ResourceVersion = "2" }, false, false},
		"a value":        {func(c *corev1.ConfigMap) { c.Data["k"] = "w" }, true, false},
		"a label":        {func(c *corev1.ConfigMap) { c.Labels["a"] = "c" }, true, false},
		"an annotation":  {func(c *corev1.ConfigMap) { c.Annotations = map[string]string{published.RolloutAnnotation: ""} }, true, false},
		"no data at all": {func(c *corev1.ConfigMap) { c.Data = nil }, true, false},
		"its deletion":   {func(c *corev1.ConfigMap) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false, true},
	} {
		now := settings()
		tt.edit(now)
		before, after := asCached(t, settings(), "ConfigMap"), asCached(t, now, "ConfigMap")
		if input, turn := changesInput(before, after), changesDeletion(before, after); input != tt.input || turn != tt.turn {
			t.Errorf("%s: changes the input %t, the turn %t", name, input, turn)
		}
	}
}

func BenchmarkNodeEvent(b *testing.B) {
	before, now := watchedNode(b), watchedNode(b)
	now.Annotations[published.ReportAnnotation] = reportText(b, published.Report{State: published.StateApplying, Facts: &bundle.Facts{HostName: "WIN-1"}})
	for i := range 20 {
		for _, n := range []*corev1.Node{before, now} {
			n.Labels["l"+strconv.Itoa(i)], n.Annotations["a"+strconv.Itoa(i)] = "x", "y"
		}
	}
	for b.Loop() {
		if changesNodeInput(before, now) || !changesNodeTurn(before, now) {
			b.Fatal("another state of the agent changes its turn alone")
		}
	}
}
