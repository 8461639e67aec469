package base

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"wmco/bundle/published"
)

// TestNodeChanges: what a Node says passes, and the kubelet's own signs of life do not.
func TestNodeChanges(t *testing.T) {
	node := func(edit func(n Object)) Object {
		n := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"a": "b"}, "annotations": map[string]any{"a": "b"}},
			"status": map[string]any{
				"addresses": []any{map[string]any{"type": "InternalIP", "address": "192.0.2.1"}},
				"conditions": []any{
					map[string]any{"type": string(corev1.NodeReady), "status": "True", "lastHeartbeatTime": "1"},
					map[string]any{"type": published.Condition, "status": "True", "lastHeartbeatTime": "1"},
				},
			},
		}}
		edit(n)
		return n
	}
	condition := func(i int, field string) func(Object) {
		return func(n Object) {
			StatusField(n, "conditions").([]any)[i].(map[string]any)[field] = "2" //nolint:forcetypeassert // as above
		}
	}
	set := func(value any, fields ...string) func(Object) {
		return func(n Object) {
			if err := unstructured.SetNestedField(n.Object, value, fields...); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tt := range map[string]struct {
		edit func(Object)
		want bool
	}{
		"nothing":                    {func(Object) {}, false},
		"the kubelet is alive":       {condition(0, "lastHeartbeatTime"), false},
		"images":                     {set([]any{}, "status", "images"), false},
		"the kubelet is not Ready":   {condition(0, "status"), true},
		"the node agent is alive":    {condition(1, "lastHeartbeatTime"), true},
		"a label":                    {set("c", "metadata", "labels", "a"), true},
		"an annotation":              {set("c", "metadata", "annotations", "b"), true},
		"no annotations":             {func(n Object) { unstructured.RemoveNestedField(n.Object, "metadata", "annotations") }, true},
		"an address":                 {set([]any{}, "status", "addresses"), true},
		"no conditions of the agent": {func(n Object) { unstructured.RemoveNestedField(n.Object, "status", "conditions") }, true},
	} {
		e := event.TypedUpdateEvent[Object]{ObjectOld: node(func(Object) {}), ObjectNew: node(tt.edit)}
		if got := NodeChanges().Update(e); got != tt.want {
			t.Errorf("%s: passes %t, want %t", name, got, tt.want)
		}
		e.ObjectOld, e.ObjectNew = e.ObjectNew, e.ObjectOld
		if got := NodeChanges().Update(e); got != tt.want {
			t.Errorf("back from %s: passes %t, want %t", name, got, tt.want)
		}
	}
}
