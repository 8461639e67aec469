package steps

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"wmco/controller/windowsnode/drain"
)

// TestPodsOfACanaryAreListedInParts: the pods of each part are there, without what a kubelet can make large, and no part has more than is in memory at a time.
func TestPodsOfACanaryAreListedInParts(t *testing.T) {
	clients := fake.NewClientset()
	parts := []string{"a", "b"}
	clients.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		o := action.(clienttesting.ListActionImpl).ListOptions //nolint:forcetypeassert // as its verb says
		if o.Limit != drain.PodsAtATime || len(parts) == 0 {
			t.Errorf("%d pods at a time, %d parts are left", o.Limit, len(parts))
		}
		list := &corev1.PodList{Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: parts[0], Labels: map[string]string{"a": "b"}}}}}
		if parts = parts[1:]; len(parts) > 0 {
			list.Continue = "more"
		}
		return true, list, nil
	})
	got, err := (&Executor{Pods: clients}).podsOf(t.Context(), "win-a")
	if err != nil || len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" || len(got[0].Labels) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
