package drain

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
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

// TestTheNameOfAnOwnerIsBounded, and the phase: whoever may create pods, and the kubelet, write into them as much as an object holds, and all pods of a node
// are kept for a round.
func TestTheNameOfAnOwnerIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	kept, err := json.Marshal(whatDecides(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/" + long, Kind: long, Name: long, UID: types.UID(long), Controller: new(true)},
		}},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(long)},
	}))
	if err != nil || len(kept) > 4<<10 {
		t.Errorf("%d bytes, %v", len(kept), err)
	}
}

// TestPodsAreListedInParts: the pods of each part are there, and no part has more than is in memory at a time.
func TestPodsAreListedInParts(t *testing.T) {
	clients := fake.NewClientset()
	parts := []string{"a", "b"}
	clients.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		o := action.(clienttesting.ListActionImpl).ListOptions //nolint:forcetypeassert // as its verb is list
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
		o := action.(clienttesting.ListActionImpl).ListOptions //nolint:forcetypeassert // as its verb is list
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

// TestManyBudgetsTakeNoTimeFromOtherPods: whoever may create pods and PodDisruptionBudgets in one namespace makes as many of both as they like.
func TestManyBudgetsTakeNoTimeFromOtherPods(t *testing.T) {
	const guarded = 3 * mostLookups
	pods := corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "z", Name: "other"}}}}
	for i := range guarded {
		pods.Items = append(pods.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: strconv.Itoa(i)}})
	}
	lists, evicted := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = pods
		status := http.StatusOK
		switch {
		case strings.HasSuffix(r.URL.Path, "/poddisruptionbudgets"):
			lists++
			answer = policyv1.PodDisruptionBudgetList{ListMeta: metav1.ListMeta{Continue: "more"}}
		case r.URL.Path == "/api/v1/namespaces/z/pods/other/eviction":
			evicted++
			answer = metav1.Status{Status: metav1.StatusSuccess}
		case strings.HasSuffix(r.URL.Path, "/eviction"):
			refused := apierrors.NewTooManyRequests("", 0)
			if strings.HasSuffix(r.URL.Path, "9/eviction") { // a pod with several budgets, as API servers say it
				refused = apierrors.NewInternalError(errors.New("more than one"))
			}
			refused.ErrStatus.TypeMeta, refused.ErrStatus.Details = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause}}}
			status, answer = int(refused.ErrStatus.Code), refused.ErrStatus
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	left, err := Drainer{Client: kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL, QPS: -1})}.EvictOnce(t.Context(), "win-a")
	if most := mostLookups * mostBudgets / PodsAtATime; lists != most || evicted != 1 || len(left.Blocked) != guarded-1 || err == nil || !strings.Contains(err.Error(), "pod a/9") {
		t.Errorf("%v: %d lists, want %d; %d evicted; %d of %d pods are blocked", err, lists, most, evicted, len(left.Blocked), len(left.Pods))
	}
}
