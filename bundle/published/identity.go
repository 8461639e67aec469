package published

// NodeID is the identity of a Node. The API server gives each object another UID, which cannot be changed
// (kubernetes.io/docs/concepts/overview/working-with-objects/names, UIDs).
type NodeID struct{ Name, UID string }

// IsSignedFor reports whether it is signed for this Node. An annotation without a UID, from an older operator, is valid
// for every Node with that name.
func (d Desired) IsSignedFor(node NodeID) bool {
	return d.NodeName == node.Name && (d.NodeUID == "" || d.NodeUID == node.UID)
}

// CloudNodeManagerGroup is the group of all cloud-node-managers on Windows nodes. What they may do is bound to it.
const CloudNodeManagerGroup = "windows-cloud-node-managers"

// CloudNodeManagerPrefix is before the name of the node in the user name of its cloud-node-manager.
const CloudNodeManagerPrefix = "windows-cloud-node-manager:"

// CloudNodeManagerUser returns the user as which cloud-node-manager works on a node. It removes a taint, which
// NodeRestriction forbids to the node itself. The node agent asks for its certificate, as the node.
func CloudNodeManagerUser(node string) string { return CloudNodeManagerPrefix + node }
