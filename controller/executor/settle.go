package executor

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"wmco/bundle"
	"wmco/controller/rollout"
)

// unsettled says which pods of a canary do not work since its turn; empty for all other nodes.
func (e *Executor) unsettled(ctx context.Context, n rollout.Node) (string, error) {
	if !mustSettle(n) {
		return "", nil
	}
	selector := fields.OneTermEqualSelector("spec.nodeName", n.Name).String()
	list, err := e.Pods.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return "", fmt.Errorf("listing the pods of node %s: %w", n.Name, err)
	}
	var broken []string
	for _, p := range list.Items {
		if isBroken(p, n.State.Turn.Begun) {
			broken = append(broken, p.Namespace+"/"+p.Name)
		}
	}
	const most = 3
	switch n := len(broken); {
	case n == 0:
		return "", nil
	case n > most:
		return "these pods are not Ready: " + strings.Join(broken[:most], ", ") + " and " + bundle.Count(n-most, "other"), nil
	}
	return "these pods are not Ready: " + strings.Join(broken, ", "), nil
}

// isBroken reports whether a pod was on the node before its turn, and ceased to be Ready in it. One that was not Ready before says nothing about the
// change, and neither does one that came later.
func isBroken(p corev1.Pod, begun time.Time) bool {
	if p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning || !p.CreationTimestamp.Time.Before(begun) {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status != corev1.ConditionTrue && !c.LastTransitionTime.Time.Before(begun)
		}
	}
	return false
}
