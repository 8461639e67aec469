package plan

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// ObserveNode reads what a Node object says. What it does not say is left to the caller: what is wanted and urgent, the platform, pods,
// executables, a Machine that is being deleted, whether the agent is silent, and how long all that has lasted.
func ObserveNode(node windowsnode.Node, read windowsnode.DesiredReader) Node {
	n := Node{
		Name: node.Name, Unschedulable: node.Spec.Unschedulable, CordonedFor: node.Annotations[published.CordonAnnotation],
		ScaleDownDisabled: node.Annotations[windowsnode.ScaleDownAnnotation] == "true", Leaving: leavingReason(node),
		Paused: node.IsPaused(), Retry: node.Annotations[published.RetryAnnotation], Joining: node.Life() == windowsnode.LifeJoining,
		Ready: node.IsReady(), ReadySince: node.KubeletCondition.LastTransitionTime.UTC(), Since: node.AgentCondition.LastTransitionTime.UTC(),
	}
	n.LeftCordoned = n.Unschedulable && n.CordonedFor == "" && node.Life() == windowsnode.LifeForeign && node.Labels[published.UpgradingLabel] == "true"
	n.Boot.Asked = retryDigest(node.Annotations[published.RebootAnnotation])
	n.readAnnotations(node, read)
	n.Boot.Windows = windowsnode.JoinBoots(windowsnode.PendingBoots(n.Report))
	n.DrainBlocked, n.DrainForbidden = n.State.Claim.Blocked, n.State.Claim.Blocked != ""
	n.Group.OSBuild = node.Labels[corev1.LabelWindowsBuild]
	if n.Group.OSBuild == "" && n.Report.Facts != nil {
		n.Group.OSBuild = n.Report.Facts.OSBuild
	}
	return n
}

// leavingReason says why a node is about to go.
func leavingReason(node windowsnode.Node) string {
	switch life := node.Life(); {
	case life == windowsnode.LifeRemoving:
		return "its instance is being removed"
	case life != windowsnode.LifeEnding:
		return ""
	case node.DeletionTimestamp.IsZero():
		return "the cluster autoscaler removes it"
	}
	return "the Node is being deleted"
}

// readAnnotations reads what operator and agent wrote. What is damaged counts as absent and is written again; what a newer operator
// wrote is not touched. What the operator has not signed counts as absent too, with one exception: an agent of before signatures that is in its
// turn acts on it until that ends.
func (n *Node) readAnnotations(node windowsnode.Node, read windowsnode.DesiredReader) {
	if node.ReportError == nil {
		n.Report = node.Report
	}
	newer := (*bundle.SchemaError)(nil)
	if errors.As(node.RolloutError, &newer) {
		n.Foreign = fmt.Sprintf("the annotation %s is of a newer operator: %v", published.RolloutAnnotation, node.RolloutError)
	}
	n.State = node.Rollout
	d, err := read(node)
	if err != nil && !errors.As(err, &newer) && !n.State.Claim.IsZero() && !n.Report.Has(published.FeatureSigned) {
		d, err = node.Desired, node.DesiredError
	}
	if err == nil {
		n.Published, n.Permitted, n.PublishedUrgent, n.Boot.Permitted = d.Bundle, d.MaxImpact, d.Urgent, d.Boot
	} else if errors.As(err, &newer) {
		n.Foreign = fmt.Sprintf("the annotation %s is of a newer operator: %v", published.DesiredAnnotation, err)
	}
}

// Source is what a step publishes, and how.
type Source struct {
	// Wanted is what is rendered for the node, Told what this operator has signed that stands on the Node; both are zero where there is none.
	Wanted, Told published.Desired
	// Sign returns the text of the annotation for the Node.
	Sign func(published.Desired) (string, error)
}

// EditNode changes a Node object as the step says, with what is wanted where the step is about that bundle, and what it was told otherwise. Nothing
// that stands on the Node unsigned is ever signed. The caller writes the difference with the resourceVersion of the object that the decision
// was made from.
func (s Step) EditNode(node *corev1.Node, from Source) error {
	text, err := s.State.Encode()
	if err != nil {
		return err
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	if err := s.publishDesired(node, from); err != nil {
		return err
	}
	node.Annotations[published.RolloutAnnotation] = text
	if s.Cordon != SwitchKeep {
		node.Spec.Unschedulable = s.Cordon == SwitchOn
		annotateNode(node, s.Cordon, published.CordonAnnotation, published.CordonedForRollout)
	}
	annotateNode(node, s.ScaleDown, windowsnode.ScaleDownAnnotation, "true")
	return nil
}

// publishDesired writes the annotation, unless it says the same already.
func (s Step) publishDesired(node *corev1.Node, from Source) error {
	if s.Bundle == "" {
		return nil
	}
	d := from.Wanted
	if d.Bundle != s.Bundle {
		d = from.Told
	}
	switch {
	case d.Bundle == s.Bundle:
	case s.Action == ActionRelease || s.Action == ActionCancelReservation:
		return nil // of an operator before signatures: it is replaced when the turn has ended
	default:
		return fmt.Errorf("publishing bundle %s on Node %s: the layers are those of %s", s.Bundle.Short(), node.Name, d.Bundle.Short())
	}
	d.MaxImpact, d.Urgent, d.NodeName, d.NodeUID, d.Boot = s.Permit, s.Urgent, node.Name, string(node.UID), s.Boot
	if from.Told.SaysTheSame(d) && !s.Again {
		return nil
	}
	text, err := from.Sign(d)
	if err == nil {
		node.Annotations[published.DesiredAnnotation] = text
	}
	return err
}

func annotateNode(node *corev1.Node, s Switch, key, value string) {
	switch s {
	case SwitchOn:
		node.Annotations[key] = value
	case SwitchOff:
		delete(node.Annotations, key)
	case SwitchKeep:
	}
}
