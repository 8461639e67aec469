package world

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/rollout/drains"
	"wmco/internal/test/observer"
	"wmco/internal/test/simnode/cluster"
)

// podsEvery is the time between two looks at the pods.
const podsEvery = 3 * time.Minute

// keepPods keeps some pods on schedulable nodes, as a controller, a scheduler and kubelets do: one that is told to end has ended a moment later, and runs
// elsewhere.
func (w *world) keepPods(ctx context.Context, count int) {
	for made := 0; ctx.Err() == nil; pause(ctx, podsEvery) {
		var list corev1.PodList
		if err := w.List(ctx, &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			continue // the API server may be away
		}
		left := 0
		for _, p := range list.Items {
			if p.DeletionTimestamp == nil {
				left++
				continue
			}
			_ = w.Delete(ctx, &p, client.GracePeriodSeconds(0)) // again, if it does not work
		}
		nodes := w.observer.Snapshot()
		for name, n := range nodes {
			if left >= count {
				break
			}
			if n.Spec.Unschedulable || !observer.IsReady(n) {
				continue
			}
			made++
			left++
			_ = w.runPod(ctx, podOn(name, made)) // again, if it does not work
		}
	}
}

// runPod makes a pod that runs at once: a budget counts for no other.
func (w *world) runPod(ctx context.Context, p *corev1.Pod) error {
	if err := w.Create(ctx, p); err != nil {
		return err
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	return w.Status().Update(ctx, p)
}

func podOn(node string, number int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("web-%d", number), OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "c2db9662-cc43-502c-a57b-c588235e2fd9", Controller: new(true)},
	}}, Spec: corev1.PodSpec{
		NodeName: node, TerminationGracePeriodSeconds: new(int64(1)), Containers: []corev1.Container{{Name: "web", Image: "mcr.microsoft.com/windows/nanoserver:ltsc2022"}},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, AutomountServiceAccountToken: new(false),
	}}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// TestABudgetHoldsUpADrain: while the budget of the storms allows nothing, a node that needs a boot keeps its pod and does not boot. Afterwards it does both.
func TestABudgetHoldsUpADrain(t *testing.T) {
	inWorld(t, options{nodes: 2, seed: 1, patience: 3 * time.Hour, collection: time.Hour}, func(t *testing.T, w *world) {
		m := w.machines[cluster.NodeName(0)]
		must(t, w.runPod(t.Context(), podOn(m.name, 1000)))
		w.denyEvictions(t)
		w.loseFeature(t, m)
		pause(w.ctx, 2*time.Hour)
		pod := podOn("", 1000)
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp != nil || w.boots > 0 {
			t.Errorf("%v, deleted %s, %d boots", err, pod.DeletionTimestamp, w.boots)
		}
		notes := w.notes(t, drains.EventDrainBlocked, m.name)
		if !slices.ContainsFunc(notes, func(n string) bool {
			return strings.Contains(n, "PodDisruptionBudget none") && strings.Contains(n, "default/web-1000")
		}) {
			t.Errorf("the events are %q", notes)
		}
		w.calm(t)
		w.rest(t)
		err := w.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)
		if !apierrors.IsNotFound(err) || w.boots != 1 || len(w.observer.Violations()) > 0 {
			t.Errorf("%v, %d boots, %+v", err, w.boots, w.observer.Violations())
		}
	})
}
