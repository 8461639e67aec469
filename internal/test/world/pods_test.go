package world

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/internal/test/observer"
)

// keepPods keeps some pods on schedulable nodes, as a controller, a scheduler and kubelets do: one that is told to end has ended a moment later, and runs
// elsewhere.
func (w *world) keepPods(ctx context.Context, count int) {
	for made := 0; ctx.Err() == nil; pause(ctx, time.Minute) {
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
			_ = w.Create(ctx, podOn(name, made)) // again, if it does not work
		}
	}
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
