package published

import "wmco/bundle"

// NodeID is the identity of a Node. The API server gives each object another UID, which cannot be changed
// (kubernetes.io/docs/concepts/overview/working-with-objects/names, UIDs).
type NodeID struct{ Name, UID string }

// IsSignedFor reports whether it is signed for this Node. An annotation without a UID, from an older operator, is valid
// for every Node with that name.
func (d Desired) IsSignedFor(node NodeID) bool {
	return d.NodeName == node.Name && (d.NodeUID == "" || d.NodeUID == node.UID)
}

// IsSignedToRemove reports whether it ends this very Node. Unlike a bundle, a removal without a UID counts for no Node.
func (d Desired) IsSignedToRemove(node NodeID) bool {
	return d.Remove && d.NodeUID != "" && d.IsSignedFor(node)
}

// ToRemove returns the state that ends the node for which this one is published: it permits nothing else.
func (d Desired) ToRemove() Desired {
	d.Remove, d.MaxImpact, d.Boot, d.Urgent, d.PermitFor = true, bundle.ImpactNone, "", false, 0
	return d
}

// CloudNodeManagerGroup is the group of all cloud-node-managers on Windows nodes. What they may do is bound to it.
const CloudNodeManagerGroup = "windows-cloud-node-managers"

// CloudNodeManagerPrefix is before the name of the node in the user name of its cloud-node-manager.
const CloudNodeManagerPrefix = "windows-cloud-node-manager:"

// CloudNodeManagerUser returns the user as which cloud-node-manager works on a node. It removes a taint, which
// NodeRestriction forbids to the node itself. The node agent asks for its certificate, as the node.
func CloudNodeManagerUser(node string) string { return CloudNodeManagerPrefix + node }
