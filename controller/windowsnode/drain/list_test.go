package drain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// large is a pod with much in it, as a kubelet may make one.
func large() corev1.Pod {
	much := map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	for i := range mostLabels {
		much[fmt.Sprintf("example.com/%d", i)] = strings.Repeat("v", 63)
	}
	ends := metav1.Now()
	owners := []metav1.OwnerReference{{Kind: "Node", Name: "other"}, {Kind: "Node", Name: "win-a", Controller: new(true)}}
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "large", UID: "u", Labels: much, Annotations: much, Finalizers: []string{"f"}, OwnerReferences: owners, DeletionTimestamp: &ends},
		Spec:       corev1.PodSpec{NodeName: "win-a", Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "m"}}}, {Name: "w"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Message: "m"},
	}
}

// TestLittleIsKeptOfPods: what decides about an eviction, and nothing that a kubelet can make large.
func TestLittleIsKeptOfPods(t *testing.T) {
	pod := large()
	want := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "large", UID: "u", Annotations: map[string]string{corev1.MirrorPodAnnotationKey: ""}, OwnerReferences: pod.OwnerReferences[1:], DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if diff := cmp.Diff(want, whatDecides(&pod)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	pod = corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}}
	if diff := cmp.Diff(pod, whatDecides(&pod)); diff != "" {
		t.Errorf("of an ordinary pod (-want +got):\n%s", diff)
	}
}

// TestPodsAreListedInParts: the pods of each part are there, and no part has more than is in memory at a time.
func TestPodsAreListedInParts(t *testing.T) {
	clients := fake.NewClientset()
	parts := []string{"a", "b"}
	clients.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		o := action.(clienttesting.ListActionImpl).ListOptions //nolint:forcetypeassert // as its verb says
		if o.Limit != PodsAtATime || len(parts) == 0 {
			t.Errorf("%d pods at a time, %d parts are left", o.Limit, len(parts))
		}
		list := &corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: parts[0]}}}}
		if parts = parts[1:]; len(parts) > 0 {
			list.Continue = "more"
		}
		return true, list, nil
	})
	left, err := Drainer{Client: clients}.RemainingPods(t.Context(), "win-a")
	if diff := cmp.Diff([]string{"default/a", "default/b"}, left.Pods); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestBudgetsAreListedInParts: whoever may create a PodDisruptionBudget makes as many and as large ones as the namespace holds.
func TestBudgetsAreListedInParts(t *testing.T) {
	clients := fake.NewClientset()
	parts := []string{"b", "a"}
	clients.PrependReactor("list", "poddisruptionbudgets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		o := action.(clienttesting.ListActionImpl).ListOptions //nolint:forcetypeassert // as its verb says
		if o.Limit != PodsAtATime || len(parts) == 0 {
			t.Errorf("%d budgets at a time, %d parts are left", o.Limit, len(parts))
		}
		list := &policyv1.PodDisruptionBudgetList{Items: []policyv1.PodDisruptionBudget{{
			ObjectMeta: metav1.ObjectMeta{Name: parts[0], Annotations: map[string]string{"much": "text"}}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
		}}}
		if parts = parts[1:]; len(parts) > 0 {
			list.Continue = "more"
		}
		return true, list, nil
	})
	got, err := Drainer{Client: clients}.budgets(t.Context(), corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}})
	want := []policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
