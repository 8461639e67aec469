package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// Action is what a step does.
type Action string

const (
	// ActionPublish publishes a bundle and permits an impact for it.
	ActionPublish Action = "publish"
	// ActionPermit permits another impact for the bundle that is published.
	ActionPermit Action = "permit"
	// ActionReserve reserves a slot among the unavailable nodes, cordons and marks the node, in one patch. Nothing else
	// may follow before the reservation is confirmed.
	ActionReserve Action = "take"
	// ActionConfirmReservation notes that the reservation fits.
	ActionConfirmReservation Action = "hold"
	// ActionCancelReservation takes a reservation back that does not fit, or is not needed any more. No pod was evicted
	// for it.
	ActionCancelReservation Action = "withdraw"
	// ActionDrain cordons the node if it is not, and evicts its pods. It is asked for until Drained is true.
	ActionDrain Action = "drain"
	// ActionRelease ends the turn: uncordons what the operator cordoned, and takes disruptive permissions back.
	ActionRelease Action = "release"
	// ActionConfirm notes that a canary has settled.
	ActionConfirm Action = "confirm"
	// ActionNote writes how long a turn has taken, for an operator that is started later, or that its time begins
	// again.
	ActionNote Action = "note"
)

// Switch is what happens to a field of a Node.
type Switch string

const (
	// SwitchKeep leaves it.
	SwitchKeep Switch = ""
	// SwitchOn sets it, and the operator's mark.
	SwitchOn Switch = "on"
	// SwitchOff removes it, and the operator's mark.
	SwitchOff Switch = "off"
)

// Step is the next step of one node: one patch of the Node, and for a drain the evictions after it.
type Step struct {
	Node   string
	Action Action
	// Bundle and Permit are what stands in the desired bundle after the step; empty if that does not change.
	Bundle bundle.Digest
	Permit bundle.Impact
	// Boot is the request of a person for a boot that the agent may do, which the operator signs; empty if there is
	// none.
	Boot bundle.Digest
	// Urgent is true for a bundle that a paused node gets too.
	Urgent bool
	// Again gives a permission again that was given already, and that the node agent does not use because it was too
	// long ago.
	Again bool
	// Cordon is about unschedulable and its mark, ScaleDown about the autoscaler's annotation.
	Cordon, ScaleDown Switch
	// State is the state on the Node after the step.
	State State
	// Why is for people.
	Why string
}

// describe returns what the step does, for people.
func (s Step) describe() string {
	switch s.Action {
	case ActionPublish:
		return "publishing the bundle"
	case ActionPermit:
		return s.describePermission()
	case ActionReserve:
		return "taking a slot"
	case ActionConfirmReservation:
		return "slot confirmed"
	case ActionCancelReservation:
		return "giving the slot back"
	case ActionDrain:
		return "draining"
	case ActionRelease:
		return "releasing the node"
	case ActionConfirm:
		return "the canary has passed"
	case ActionNote:
	}
	return ""
}

func (s Step) describePermission() string {
	switch {
	case s.Boot != "":
		return "permitting the reboot"
	case s.Permit == bundle.ImpactNone:
		return "withdrawing the permission to restart services"
	case s.Permit == bundle.ImpactRestart:
		return "permitting service restarts"
	}
	return "permitting the change (impact " + string(s.Permit) + ")"
}

// Source is what a step publishes, and how.
type Source struct {
	// Wanted is the rendered bundle of the node, Signed the annotation of the Node that this operator has signed; both are
	// zero where there is none.
	Wanted, Signed published.Desired
	// Sign returns the text of the annotation for the Node.
	Sign func(published.Desired) (string, error)
}

// EditNode applies the step to a Node object, with the wanted bundle where the step is about that, and the told one
// otherwise. Nothing unsigned on the Node is ever signed. The caller writes the difference with
// the resourceVersion of the object that the decision was made from.
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

// publishDesired writes the annotation, unless it is the same already.
func (s Step) publishDesired(node *corev1.Node, from Source) error {
	if s.Bundle == "" {
		return nil
	}
	d := from.Wanted
	if d.Bundle != s.Bundle {
		d = from.Signed
	}
	switch {
	case d.Bundle == s.Bundle:
	case s.Action == ActionRelease || s.Action == ActionCancelReservation:
		return nil // of an operator before signatures: it is replaced when the turn has ended
	default:
		return fmt.Errorf("publishing bundle %s on Node %s: the layers are those of %s", s.Bundle.Short(), node.Name,
			d.Bundle.Short())
	}
	d.MaxImpact, d.Urgent, d.NodeName, d.NodeUID, d.Boot = s.Permit, s.Urgent, node.Name, string(node.UID), s.Boot
	if from.Signed.SaysTheSame(d) && !s.Again {
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
