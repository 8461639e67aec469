package steps

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodsThatAreBrokenSinceATurn(t *testing.T) {
	begun := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	earlier, later := metav1.NewTime(begun.Add(-time.Hour)), metav1.NewTime(begun.Add(time.Minute))
	pod := func(created metav1.Time, ready corev1.ConditionStatus, since metav1.Time) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: created}, Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: since}},
		}}
	}
	with := func(p corev1.Pod, change func(*corev1.Pod)) corev1.Pod { change(&p); return p }
	broken := pod(earlier, corev1.ConditionFalse, later)
	for _, tt := range []struct {
		name string
		pod  corev1.Pod
		want bool
	}{
		{"ceased to be Ready", broken, true},
		{"Ready again", pod(earlier, corev1.ConditionTrue, later), false},
		{"was not Ready before", pod(earlier, corev1.ConditionFalse, earlier), false},
		{"came later", pod(later, corev1.ConditionFalse, later), false},
		{"ends", with(broken, func(p *corev1.Pod) { p.DeletionTimestamp = &later }), false},
		{"has ended", with(broken, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), false},
	} {
		if got := brokeDuringTurn(tt.pod, begun); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
