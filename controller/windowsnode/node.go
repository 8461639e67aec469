package windowsnode

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
)

// Node is a Windows Node with what its annotations and conditions say. It is two pointers, so that lists of all Nodes
// are small; Decode makes both. What they point to is shared by those who read it: whoever changes the object copies it
// before.
type Node struct {
	*corev1.Node
	*Decoded
}

// Decoded is what the annotations and conditions of a Node say.
type Decoded struct {
	// Desired is the decoded DesiredAnnotation, whoever has written it; DesiredError is why it cannot be used, set
	// also where there is none.
	Desired      published.Desired
	DesiredError error
	// Report is the report of the node agent; ReportError is why it cannot be used, set also where there is none.
	Report      published.Report
	ReportError error
	// Rollout is the operator's note. It is zero where there is nothing, and where RolloutError is why it
	// cannot be used.
	Rollout      RolloutState
	RolloutError error
	// KubeletCondition is the condition Ready, AgentCondition that of the node agent (published.Condition); zero where
	// there is none.
	KubeletCondition, AgentCondition corev1.NodeCondition
}

// Reference is what Events on the Node are about.
func (n Node) Reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}
}

// Decode decodes a Node.
func Decode(object corev1.Node) Node { return decode(object, Node{}) }

// DecodeAfter is Decode for a Node of which another version was decoded before: an annotation that has not changed is
// not decoded again, and both have the same value of it.
func DecodeAfter(before Node, object corev1.Node) Node { return decode(object, before) }

func decode(object corev1.Node, before Node) Node {
	n := Node{&object, &Decoded{}}
	isSame := func(annotation string) bool {
		return before.Node != nil && before.Annotations[annotation] == object.Annotations[annotation]
	}
	if isSame(published.DesiredAnnotation) {
		n.Desired, n.DesiredError = before.Desired, before.DesiredError
	} else {
		n.Desired, n.DesiredError = published.DecodeDesired(object.Annotations[published.DesiredAnnotation])
	}
	if isSame(published.ReportAnnotation) {
		n.Report, n.ReportError = before.Report, before.ReportError
	} else {
		n.Report, n.ReportError = ReadReport(object.Annotations)
		if before.Node != nil {
			shareUnchanged(&n.Report, before.Report)
		}
	}
	if isSame(published.RolloutAnnotation) {
		n.Rollout, n.RolloutError = before.Rollout, before.RolloutError
	} else {
		n.Rollout, n.RolloutError = DecodeRolloutState(object.Annotations[published.RolloutAnnotation])
	}
	for _, c := range object.Status.Conditions {
		switch c.Type {
		case corev1.NodeReady:
			n.KubeletCondition = c
		case published.Condition:
			n.AgentCondition = c
		}
	}
	return n
}

// shareUnchanged gives a report those parts of the one before that are the same. Both are in memory until all who use
// Nodes have read the newer one.
func shareUnchanged(now *published.Report, before published.Report) {
	if slices.Equal(now.Features, before.Features) {
		now.Features = before.Features
	}
	if slices.Equal(now.Layers, before.Layers) {
		now.Layers = before.Layers
	}
	if reflect.DeepEqual(now.Facts, before.Facts) {
		now.Facts = before.Facts
	}
}

// ReadReport returns the report of the node agent alone, by the Node's annotations.
func ReadReport(annotations map[string]string) (published.Report, error) {
	return published.DecodeReport(annotations[published.ReportAnnotation])
}

// DesiredReader returns the desired bundle of a Node. Only the operator knows whether it has written it. Those who only
// show what a Node says have no keys, and take Decoded.Desired.
type DesiredReader func(Node) (published.Desired, error)

// VerifyWith returns what reads a desired bundle with a check of its signatures, which gets the Node and the text of
// the annotation.
func VerifyWith(open func(node published.NodeID, text string) (published.Desired, error)) DesiredReader {
	return func(n Node) (published.Desired, error) {
		return open(n.ID(), n.Annotations[published.DesiredAnnotation])
	}
}

// ID returns which Node it is.
func (n Node) ID() published.NodeID { return published.NodeID{Name: n.Name, UID: string(n.UID)} }

// IsReady reports whether the kubelet reports that it is.
func (n Node) IsReady() bool { return n.KubeletCondition.Status == corev1.ConditionTrue }

// IsLost reports whether the cluster has lost the kubelet. One that reports itself as not Ready is not lost,
// and has a certificate.
func (n Node) IsLost() bool { return n.KubeletCondition.Status == corev1.ConditionUnknown }

// IsPaused reports whether an administrator keeps the node as it is.
func (n Node) IsPaused() bool {
	_, paused := n.Annotations[published.PausedAnnotation]
	return paused
}

// IsJoined reports whether an operator has finished with the node.
func (n Node) IsJoined() bool { return IsJoined(n.Annotations) }

// IsJoined reports whether an operator has finished with a node, by the Node's annotations.
func IsJoined(annotations map[string]string) bool {
	return annotations[published.VersionAnnotation] != "" && annotations[published.JoiningAnnotation] == ""
}

// HasScaleDownTaint reports whether the cluster autoscaler removes the node.
func (n Node) HasScaleDownTaint() bool { return HasTaint(n.Node, ToBeDeletedTaint) }

// HasTaint reports whether a Node has a taint with this key.
func HasTaint(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// LacksPayload reports whether the agent cannot apply the published bundle for want of executables: another operator
// publishes others, or contents of the host were damaged.
func (n Node) LacksPayload() bool {
	return n.DesiredError == nil && n.ReportError == nil && n.Report.State == published.StatePayloadMissing &&
		n.Report.Desired == n.Desired.Bundle
}

// IsPayloadPending reports whether executables have to be copied to the host before a bundle with them is published
// there: the bundle that is published is not made with this payload, and it has not been copied yet. A node for which
// nothing is published gets its executables when it joins. An empty digest is no payload.
func (n Node) IsPayloadPending(payload bundle.Digest) bool {
	if payload == "" || n.Annotations[published.PayloadAnnotation] == string(payload) {
		return false
	}
	return n.DesiredError == nil && n.Desired.Payload != payload
}
