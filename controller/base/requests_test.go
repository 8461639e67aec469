package base

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"wmco/bundle/published"
)

// TestNodeChanges: changes of a Node pass, and the kubelet's own signs of life do not.
func TestNodeChanges(t *testing.T) {
	at := func(second int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC))
	}
	node := func(edit func(n *corev1.Node)) *corev1.Node {
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}},
			Status: corev1.NodeStatus{
				Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}},
				Conditions: []corev1.NodeCondition{
					{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: at(1)},
					{Type: published.Condition, Status: corev1.ConditionTrue, LastHeartbeatTime: at(1)},
				},
			},
		}
		edit(n)
		return n
	}
	for name, tt := range map[string]struct {
		edit func(*corev1.Node)
		want bool
	}{
		"nothing":                    {func(*corev1.Node) {}, false},
		"the kubelet is alive":       {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = at(2) }, false},
		"the phase":                  {func(n *corev1.Node) { n.Status.Phase = corev1.NodeRunning }, false},
		"the kubelet is not Ready":   {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		"the node agent is alive":    {func(n *corev1.Node) { n.Status.Conditions[1].LastHeartbeatTime = at(2) }, true},
		"a label":                    {func(n *corev1.Node) { n.Labels["a"] = "c" }, true},
		"an annotation":              {func(n *corev1.Node) { n.Annotations["b"] = "c" }, true},
		"no annotations":             {func(n *corev1.Node) { n.Annotations = nil }, true},
		"an address":                 {func(n *corev1.Node) { n.Status.Addresses = nil }, true},
		"no conditions of the agent": {func(n *corev1.Node) { n.Status.Conditions = nil }, true},
	} {
		e := event.TypedUpdateEvent[*corev1.Node]{ObjectOld: node(func(*corev1.Node) {}), ObjectNew: node(tt.edit)}
		if got := NodeChanges().Update(e); got != tt.want {
			t.Errorf("%s: passes %t, want %t", name, got, tt.want)
		}
		e.ObjectOld, e.ObjectNew = e.ObjectNew, e.ObjectOld
		if got := NodeChanges().Update(e); got != tt.want {
			t.Errorf("back from %s: passes %t, want %t", name, got, tt.want)
		}
	}
}
