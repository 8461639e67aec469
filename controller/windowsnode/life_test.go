package windowsnode

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/published"
)

// TestWhereANodeIsInItsLife, by the marks that are on it.
func TestWhereANodeIsInItsLife(t *testing.T) {
	const version, joining, desired = published.VersionAnnotation, published.JoiningAnnotation, published.DesiredAnnotation
	deleted := metav1.NewTime(time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC))
	for name, tt := range map[string]struct {
		annotations map[string]string
		change      func(*corev1.Node)
		want        Life
	}{
		"its kubelet has just registered it": {nil, nil, LifeNew},
		"it is cordoned until it has joined": {map[string]string{joining: "true"}, nil, LifeJoining},
		"it has joined":                      {map[string]string{version: "1", desired: "{}"}, nil, LifeJoined},
		"another operator has joined it":     {map[string]string{version: "1"}, nil, LifeForeign},
		"its entry was removed":              {map[string]string{version: "1", joining: "true", desired: "{}"}, nil, LifeRemoving},
		"its entry was removed while it was cordoned": {
			map[string]string{version: "1", desired: "{}"}, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: RemovingTaint}} }, LifeRemoving,
		},
		"its Node is being deleted": {
			map[string]string{version: "1", joining: "true"}, func(n *corev1.Node) { n.DeletionTimestamp = &deleted }, LifeEnding,
		},
		"the autoscaler removes it": {
			map[string]string{joining: "true"}, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: ToBeDeletedTaint}} }, LifeEnding,
		},
	} {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a", Annotations: tt.annotations}}
		if tt.change != nil {
			tt.change(&n)
		}
		if got := Decode(n).Life(); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
