package steps

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"wmco/bundle"
	"wmco/controller/windowsnode/drain"
)

const (
	// mostPods is how many pods of a node are looked at: a kubelet runs 250 and makes as many mirror pods as it likes.
	mostPods = 1000
	// podsLimit is how long that may take, so that one node does not keep the others waiting.
	podsLimit = 15 * time.Second
)

// listPods returns the pods of a node, with the fields that tell whether they are Ready.
func listPods(ctx context.Context, clients kubernetes.Interface, node string) ([]corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, podsLimit)
	defer cancel()
	o := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(), Limit: drain.PodsAtATime}
	var all []corev1.Pod
	for more := true; more; more = o.Continue != "" {
		list, err := clients.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("listing the pods of node %s: %w", node, err)
		}
		for _, p := range list.Items {
			all = append(all, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID,
					CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp},
				Status: corev1.PodStatus{Phase: drain.BoundedText(p.Status.Phase),
					Conditions: []corev1.PodCondition{readyCondition(p)}},
			})
		}
		if o.Continue = list.Continue; len(all) > mostPods {
			return nil, fmt.Errorf("listing the pods of node %s: it has more than %d", node, mostPods)
		}
	}
	return all, nil
}

// describeBroken names the pods that do not work since a turn; empty if all do. Ready are those that were Ready before
// it, by UID; nil if that is not known.
func describeBroken(list []corev1.Pod, ready map[types.UID]bool, begun time.Time) string {
	var broken []string
	for _, p := range list {
		if ready != nil && ready[p.UID] && isPodNotReady(p) || ready == nil && brokeDuringTurn(p, begun) {
			broken = append(broken, p.Namespace+"/"+p.Name)
		}
	}
	if len(broken) == 0 {
		return ""
	}
	others := func(left int) string { return " and " + bundle.Count(left, "other") }
	return "these pods are not Ready: " + bundle.JoinFirst(broken, 3, ", ", others)
}

// brokeDuringTurn reports whether a pod was on the node before its turn, and ceased to be Ready in it, by the times of
// others: for a process that has begun in the turn. One that was not Ready before proves nothing about the change, and
// neither does one that came later.
func brokeDuringTurn(p corev1.Pod, begun time.Time) bool {
	return isPodNotReady(p) && p.CreationTimestamp.Time.Before(begun) &&
		!readyCondition(p).LastTransitionTime.Time.Before(begun)
}

// isPodNotReady reports whether a pod should be Ready and is not.
func isPodNotReady(p corev1.Pod) bool {
	c := readyCondition(p)
	return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning && c.Type != "" &&
		c.Status != corev1.ConditionTrue
}

// readyCondition is the condition of a pod, without the texts that its kubelet writes; zero if it has none.
func readyCondition(p corev1.Pod) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return corev1.PodCondition{Type: corev1.PodReady, Status: drain.BoundedText(c.Status),
				LastTransitionTime: c.LastTransitionTime}
		}
	}
	return corev1.PodCondition{}
}
