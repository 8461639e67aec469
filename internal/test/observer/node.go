package observer

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// IsReady reports whether the kubelet is.
func IsReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// IsCordonedByUs reports whether the operator has cordoned the node for a rollout.
func IsCordonedByUs(n corev1.Node) bool { return n.Annotations[published.CordonAnnotation] != "" }

// IsCurrent reports whether a node is Ready, and reports its published bundle as applied.
func IsCurrent(n corev1.Node) bool {
	d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
	if err != nil {
		return false
	}
	r, err := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	return err == nil && IsReady(n) && r.State == published.StateApplied && r.Desired == d.Bundle && r.Applied == d.Bundle
}

// isHeld reports whether it is the turn of a node.
func isHeld(n corev1.Node) bool {
	state, err := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
	return err == nil && state.Slot.Held
}

// IsAtRest reports whether a node is current, nothing of a rollout is left on it, and no boot that was asked for is to
// come.
func IsAtRest(n corev1.Node) bool {
	d, _ := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
	r, _ := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	state, err := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
	return err == nil && IsCurrent(n) && !IsCordonedByUs(n) && state.Slot.IsZero() && !isDrastic(d) && !awaitsBoot(n, r, state)
}

func isDrastic(d published.Desired) bool {
	return d.MaxImpact == bundle.ImpactDrain || d.MaxImpact == bundle.ImpactReboot
}

// awaitsBoot reports whether a boot is to come that was asked for with the annotation: its turn may not have begun.
func awaitsBoot(n corev1.Node, r published.Report, state windowsnode.RolloutState) bool {
	value := n.Annotations[published.RebootAnnotation]
	asked := bundle.Of([]byte(value))
	return value != "" && asked != r.Rebooted && asked != state.Booted
}

// DescribeNode shows a node, for messages.
func DescribeNode(n corev1.Node) string {
	d, _ := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
	r, _ := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	state, _ := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
	return fmt.Sprintf("%s: Ready %t, unschedulable %t, cordoned for %q, desired %s (%s) with at most %s, reported %s for %s with %s needed (%s: %s), turn %+v, claim %+v",
		n.Name, IsReady(n), n.Spec.Unschedulable, n.Annotations[published.CordonAnnotation], d.Bundle.Short(), d.Counter(), d.MaxImpact,
		r.State, r.Desired.Short(), r.Impact, r.Fault, r.Message, state.Turn, state.Slot)
}

// standing is how a node is, as anybody can see.
type standing struct {
	// cordoned is by a rollout. Held is a node whose pods may be evicted, or on which a boot is permitted and not over.
	// Gone is one that pods cannot use for another reason: it is not Ready, or an administrator cordoned it. Restarting
	// is one whose services may restart.
	cordoned, held, gone, restarting bool
}

// standingOf returns that of a node. One that is excused is kept from being Ready by the test itself, and does not
// restart. One whose annotation is foreign was told nothing by the operator: its agent refuses that.
func standingOf(n corev1.Node, excused, foreign bool) standing {
	d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
	r, unread := published.DecodeReport(n.Annotations[published.ReportAnnotation])
	known := err == nil && unread == nil
	state, _ := windowsnode.DecodeRolloutState(n.Annotations[published.RolloutAnnotation])
	retry := n.Annotations[published.RetryAnnotation]
	// A person has it tried again, beside the rollout: the operator notes that, and when.
	asked := retry != "" && (bundle.Of([]byte(retry)) != state.Turn.Retry || state.Turn.Permitted.After(state.Turn.Begun))
	// One that joins has every permission at once, and no pods.
	joins := n.Annotations[published.JoiningAnnotation] != "" && n.Annotations[published.VersionAnnotation] == ""
	open := known && !foreign && !joins && (r.Desired != d.Bundle || r.State == published.StateApplying || r.State == published.StateRebootPending)
	s := standing{
		cordoned:   IsCordonedByUs(n),
		held:       isHeld(n) || open && isDrastic(d),
		restarting: open && d.MaxImpact == bundle.ImpactRestart && !excused && !asked,
	}
	// A node that restarts services may be without a kubelet for a moment: that is counted apart. A new one was never
	// Ready.
	s.gone = n.Spec.Unschedulable && !s.cordoned || known && r.Applied != "" && !IsReady(n) && !s.restarting
	return s
}

func (s standing) String() string {
	var words []string
	for _, w := range []struct {
		is   bool
		word string
	}{{s.cordoned, "cordoned by us"}, {s.gone, "gone"}, {s.held, "held"}, {s.restarting, "restarting"}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	return "(" + strings.Join(words, ", ") + ")"
}
