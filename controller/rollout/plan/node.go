package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// ObserveNode reads a Node object. The caller adds the rest: wanted and urgent bundles, the
// platform, pods, executables, a Machine that is being deleted, whether the agent is silent, and how long all that has
// lasted. Desired is the desired bundle that counts as published, or err why there is none.
func ObserveNode(node windowsnode.Node, desired published.Desired, err error) Node {
	life := node.Life()
	n := Node{
		Name: node.Name, Unschedulable: node.Spec.Unschedulable,
		CordonedFor:       node.Annotations[published.CordonAnnotation],
		ScaleDownDisabled: node.Annotations[windowsnode.ScaleDownAnnotation] == "true", Leaving: leavingReason(node, life),
		Paused: node.IsPaused(), Retry: node.Annotations[published.RetryAnnotation],
		Joining: life == windowsnode.LifeJoining,
		Ready:   node.IsReady(), ReadySince: node.KubeletCondition.LastTransitionTime.UTC(),
		Since: node.AgentCondition.LastTransitionTime.UTC(),
	}
	n.LeftCordoned = n.Unschedulable && n.CordonedFor == "" && life == windowsnode.LifeForeign &&
		node.Labels[published.UpgradingLabel] == "true"
	n.Boot.Asked = retryDigest(node.Annotations[published.RebootAnnotation])
	n.readAnnotations(node, desired, err)
	if err == nil && desired.Remove {
		n.EndNode()
	}
	n.Boot.Windows = windowsnode.JoinBoots(windowsnode.PendingBoots(n.Report))
	n.DrainBlocked, n.DrainForbidden = n.State.Slot.Blocked, n.State.Slot.Blocked != ""
	n.Group.OSBuild = node.Labels[corev1.LabelWindowsBuild]
	if n.Group.OSBuild == "" && n.Report.Facts != nil {
		n.Group.OSBuild = n.Report.Facts.OSBuild
	}
	return n
}

// EndNode notes that the node was told to end, which is never taken back.
func (n *Node) EndNode() { n.Removing, n.Joining, n.Leaving = true, false, leavingRemoved }

const leavingRemoved = "the host is being removed"

// leavingReason returns why a node is about to leave.
func leavingReason(node windowsnode.Node, life windowsnode.Life) string {
	switch {
	case life == windowsnode.LifeRemoving:
		return leavingRemoved
	case life != windowsnode.LifeEnding:
		return ""
	case node.DeletionTimestamp.IsZero():
		return "the cluster autoscaler removes it"
	}
	return "the Node is being deleted"
}

// readAnnotations reads what operator and agent wrote. What is damaged counts as absent and is written again; what a
// newer operator wrote is not touched. What the operator has not signed counts as absent too, with one exception: an
// agent of before signatures that is in its turn acts on it until that ends.
func (n *Node) readAnnotations(node windowsnode.Node, desired published.Desired, err error) {
	if node.ReportError == nil {
		n.Report = node.Report
	}
	newer := (*bundle.SchemaError)(nil)
	if errors.As(node.RolloutError, &newer) {
		n.Foreign = fmt.Sprintf("the annotation %s was written by a newer operator: %v", published.RolloutAnnotation,
			node.RolloutError)
	}
	n.State = node.Rollout
	if err != nil && !errors.As(err, &newer) && !n.State.Slot.IsZero() && !n.Report.Has(published.FeatureSigned) {
		desired, err = node.Desired, node.DesiredError
	}
	refused, text := n.Report.Refused, node.Annotations[published.DesiredAnnotation]
	if refused != "" && (err != nil || refused != bundle.Of([]byte(text))) {
		n.Report.Desired = "" // it is about what others have written
	}
	if err == nil {
		n.Published, n.Permitted, n.PublishedUrgent, n.Boot.Permitted = desired.Bundle, desired.MaxImpact,
			desired.Urgent, desired.Boot
	} else if errors.As(err, &newer) {
		n.Foreign = fmt.Sprintf("the annotation %s was written by a newer operator: %v", published.DesiredAnnotation, err)
	}
}

// TargetDigest returns what a bundle is, without the values that belong to one node alone: the digest of its cluster
// layer, and of its node layer which entries there are, with the flags of services but not their values. Two nodes with
// same target get the same change. If values alone change on all nodes, none of them has its wanted bundle yet, so
// canaries go first as well.
func TargetDigest(cluster bundle.Digest, node bundle.Layer) bundle.Digest {
	lines := []string{"cluster " + string(cluster), "stage " + string(node.Stage)}
	for _, id := range node.IDs() {
		lines = append(lines, "entry "+string(id))
	}
	for _, s := range node.Services {
		lines = append(lines, "service "+s.Name+" "+s.Environment+" "+strings.Join(flagNames(s.Argv), " "))
	}
	for _, p := range node.Payload {
		lines = append(lines, fmt.Sprintf("payload %s %s", p.Path, p.Digest))
	}
	slices.Sort(lines)
	return bundle.Of([]byte(strings.Join(lines, "\n")))
}

// flagNames returns the names of flags in a command.
func flagNames(argv []string) []string {
	var names []string
	for _, a := range argv {
		name, _, _ := strings.Cut(a, "=")
		if strings.HasPrefix(name, "-") {
			names = append(names, name)
		}
	}
	return names
}
