package steps

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode/drain"
)

// TestPodsOfACanaryAreListedInParts: the pods of each part are there, without what a kubelet can make large, and no part has more than is in memory at a time.
func TestPodsOfACanaryAreListedInParts(t *testing.T) {
	clients := fake.NewClientset()
	parts, long := []string{"a", "b"}, strings.Repeat("x", 1<<20)
	clients.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		o := action.(clienttesting.ListActionImpl).ListOptions //nolint:forcetypeassert // as its verb is list
		if o.Limit != drain.PodsAtATime || len(parts) == 0 {
			t.Errorf("%d pods at a time, %d parts are left", o.Limit, len(parts))
		}
		list := &corev1.PodList{Items: []corev1.Pod{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: parts[0], Labels: map[string]string{"a": "b"}},
			Status: corev1.PodStatus{Phase: corev1.PodPhase(long), Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionStatus(long), Reason: long, Message: long},
			}},
		}}}
		if parts = parts[1:]; len(parts) > 0 {
			list.Continue = "more"
		}
		return true, list, nil
	})
	got, err := listPods(t.Context(), clients, "win-a")
	if err != nil || len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" || len(got[0].Labels) > 0 {
		t.Errorf("%d pods, %v", len(got), err)
	}
	if kept, err := json.Marshal(got); err != nil || len(kept) > 8<<10 {
		t.Errorf("%d bytes are kept of two pods, %v", len(kept), err)
	}
}

// TestACanaryWhosePodsCannotBeListedWaitsAlone: its kubelet makes as many mirror pods as it likes. The canary does not settle; it is asked again after a
// pause, and a listing has an end, so that the nodes after it are observed.
func TestACanaryWhosePodsCannotBeListedWaitsAlone(t *testing.T) {
	turn := plan.Turn{Bundle: bundle.Of(nil), Impact: bundle.ImpactRestart, Canary: true, Begun: time.Now(), Permitted: time.Now()}
	n := plan.Node{Name: "win-a", Published: turn.Bundle, Report: published.Report{State: published.StateApplied}, State: plan.State{Turn: turn}}
	for name, tt := range map[string]struct {
		answer   func() (*corev1.PodList, error)
		want     string
		requests int
	}{
		"an endless list": {func() (*corev1.PodList, error) {
			list := &corev1.PodList{Items: make([]corev1.Pod, drain.PodsAtATime)}
			list.Continue = "more"
			return list, nil
		}, "it has more than 1000", mostPods/drain.PodsAtATime + 1},
		"a list that has expired": {func() (*corev1.PodList, error) {
			return &corev1.PodList{}, errors.New("the continue parameter is too old")
		}, "is too old", 1},
	} {
		t.Run(name, func(t *testing.T) {
			clients, requests := fake.NewClientset(), 0
			clients.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				if requests++; requests > 100 {
					t.Fatal("the list has no end")
				}
				list, err := tt.answer()
				return true, list, err
			})
			e := &Executor{Pods: clients, Try: base.NewPauses(logr.Discard()).Try}
			got := []string{e.unsettledPods(t.Context(), n), e.unsettledPods(t.Context(), n)}
			if !strings.Contains(got[0], tt.want) || got[1] == "" || requests != tt.requests {
				t.Errorf("%q after %d requests, want %q after %d", got, requests, tt.want, tt.requests)
			}
		})
	}
}
