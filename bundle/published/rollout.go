package published

import "strings"

// Annotations and labels of a Node, other than those of its bundle.
const (
	// RolloutAnnotation holds what controller/rollout has done with the node.
	RolloutAnnotation = domain + "rollout"
	// CordonAnnotation is why the operator cordoned the node. A node that is unschedulable without it, and is
	// not joining, was cordoned by another user, and stays so.
	CordonAnnotation = domain + "cordoned-for"
	// CordonedForRollout is its value.
	CordonedForRollout = "rollout"
	// JoiningAnnotation marks a node that the operator cordoned until it has joined, or because it is being removed.
	JoiningAnnotation = domain + "joining"
	// DesiredVersionAnnotation is the version of the operator that manages the node. VersionAnnotation is the version
	// whose executables the node runs. UpgradingLabel marks a node that moves from one to the other.
	DesiredVersionAnnotation = domain + "desired-version"
	UpgradingLabel           = domain + "upgrading"
	// PayloadAnnotation is the digest of the executables that were copied to the host ahead of the bundle that needs
	// them.
	PayloadAnnotation = domain + "payload"
	// VersionAnnotation is the version of the operator that configured the node. It is written when the node has
	// joined.
	VersionAnnotation = domain + "version"
	// InstanceLabel marks the Node of an entry of windows-instances.
	InstanceLabel = domain + "byoh"
	// InstanceAnnotation is the entry of windows-instances that a node is for. The existing operator has none.
	InstanceAnnotation = domain + "instance"
	// AdoptAnnotation, with the value AdoptTrue, requests the adoption of a node of the existing operator. It decides
	// nothing else: the host itself states which Node it is.
	AdoptAnnotation = domain + "adopt"
	// RemoveAnnotation of a Node removes an instance: "true" if the whole ConfigMap was deleted with its entry, "force" if
	// the host no longer exists either and cannot be cleaned up.
	RemoveAnnotation = domain + "remove"
	// ConfirmAnnotation of a Node names the inputs, separated by commas, that were deleted on purpose: the node gets
	// the bundle without them. The operator removes it when nothing waits for it any longer.
	ConfirmAnnotation = domain + "confirm-deleted"
	// ConfirmFindingAnnotation of a Node names the findings, by their reasons and separated by commas, that hold a
	// change of the inputs: the node gets it nevertheless. The operator removes it when nothing waits for it any
	// longer.
	ConfirmFindingAnnotation = domain + "confirm-finding"
	// PausedAnnotation keeps a node as it is: no rollout, no repair of drift. An administrator sets it, with any value.
	PausedAnnotation = domain + "paused"
)

// AdoptTrue is the value of AdoptAnnotation.
const AdoptTrue = "true"

// ConfirmedNames returns what ConfirmAnnotation or ConfirmFindingAnnotation names.
func ConfirmedNames(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
}
