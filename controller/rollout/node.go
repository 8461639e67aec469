package rollout

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
)

// What the cluster autoscaler reads and writes on Nodes (kubernetes/autoscaler, cluster-autoscaler/FAQ.md and utils/taints).
const (
	// ScaleDownAnnotation of a Node keeps the autoscaler from removing it.
	ScaleDownAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	toBeDeleted         = "ToBeDeletedByClusterAutoscaler"
)

// Observe reads what a Node object says. What it does not say is left to the caller: what is wanted and urgent, the platform, pods,
// executables, and a Machine that is being deleted.
func Observe(node corev1.Node, now time.Time) Node {
	n := Node{
		Name: node.Name, Unschedulable: node.Spec.Unschedulable, CordonedFor: node.Annotations[published.CordonAnnotation],
		ScaleDownDisabled: node.Annotations[ScaleDownAnnotation] == "true", Leaving: leaving(node),
	}
	_, n.Paused = node.Annotations[published.PausedAnnotation]
	n.Retry = node.Annotations[published.RetryAnnotation]
	n.Joining = node.Annotations[published.JoiningAnnotation] != "" && node.Annotations[published.VersionAnnotation] == ""
	n.readAnnotations(node.Annotations)
	n.DrainBlocked, n.DrainForbidden = n.State.Claim.Blocked, n.State.Claim.Blocked != ""
	n.Group.OSBuild = node.Labels[corev1.LabelWindowsBuild]
	if n.Group.OSBuild == "" && n.Report.Facts != nil {
		n.Group.OSBuild = n.Report.Facts.OSBuild
	}
	for _, c := range node.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady:
			n.Ready, n.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.UTC()
		case published.Condition:
			n.Since = c.LastTransitionTime.UTC()
			n.Silent = now.Sub(c.LastHeartbeatTime.Time) > published.SilentAfter
		}
	}
	n.Silent = n.Silent && n.Ready
	return n
}

// leaving says why a node is about to go.
func leaving(node corev1.Node) string {
	if !node.DeletionTimestamp.IsZero() {
		return "the Node is being deleted"
	}
	if node.Annotations[published.JoiningAnnotation] != "" && node.Annotations[published.VersionAnnotation] != "" {
		return "its instance is being removed"
	}
	for _, t := range node.Spec.Taints {
		if t.Key == toBeDeleted {
			return "the cluster autoscaler removes it"
		}
	}
	return ""
}

// readAnnotations reads what operator and agent wrote. What is damaged counts as absent and is written again; what a newer operator
// wrote is not touched.
func (n *Node) readAnnotations(a map[string]string) {
	newer := (*bundle.SchemaError)(nil)
	d, err := published.DecodeDesired(a[published.DesiredAnnotation])
	if err == nil {
		n.Published, n.Permitted, n.PublishedUrgent = d.Bundle, d.MaxImpact, d.Urgent
	} else if errors.As(err, &newer) {
		n.Foreign = fmt.Sprintf("the annotation %s is of a newer operator: %v", published.DesiredAnnotation, err)
	}
	if n.State, err = DecodeState(a[published.RolloutAnnotation]); errors.As(err, &newer) {
		n.Foreign = fmt.Sprintf("the annotation %s is of a newer operator: %v", published.RolloutAnnotation, err)
	}
	if r, err := published.DecodeReport(a[published.ReportAnnotation]); err == nil {
		n.Report = r
	}
}

// Edit changes a Node object as the step says. Wanted is used where the step is about that bundle, and what stands on the Node otherwise. The
// caller writes the difference with the resourceVersion of the object that the decision was made from.
func (s Step) Edit(node *corev1.Node, wanted published.Desired) error {
	text, err := s.State.Encode()
	if err != nil {
		return err
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	if s.Bundle != "" {
		d := wanted
		if d.Bundle != s.Bundle {
			d, _ = published.DecodeDesired(node.Annotations[published.DesiredAnnotation])
		}
		if d.Bundle != s.Bundle {
			return fmt.Errorf("publishing bundle %s on Node %s: the layers are those of %s", s.Bundle.Short(), node.Name, d.Bundle.Short())
		}
		d.MaxImpact, d.Urgent = s.Permit, s.Urgent
		if node.Annotations[published.DesiredAnnotation], err = d.Encode(); err != nil {
			return err
		}
	}
	node.Annotations[published.RolloutAnnotation] = text
	if s.Cordon != SwitchKeep {
		node.Spec.Unschedulable = s.Cordon == SwitchOn
		annotate(node, s.Cordon, published.CordonAnnotation, published.CordonedForRollout)
	}
	annotate(node, s.ScaleDown, ScaleDownAnnotation, "true")
	return nil
}

func annotate(node *corev1.Node, s Switch, key, value string) {
	switch s {
	case SwitchOn:
		node.Annotations[key] = value
	case SwitchOff:
		delete(node.Annotations, key)
	case SwitchKeep:
	}
}
