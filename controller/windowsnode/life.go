package windowsnode

import "wmco/bundle/published"

// Life is where a node is in its life. docs/architecture.md, The life of a node, lists what is done in each, and what
// ends it.
type Life string

const (
	// LifeNew is a Node that the operator has not marked yet: its kubelet has just registered it, or a person has
	// joined its host.
	LifeNew Life = "New"
	// LifeJoining is one that the operator has cordoned until it has all that it needs.
	LifeJoining Life = "Joining"
	// LifeJoined is one that has joined. The rollout brings it changes.
	LifeJoined Life = "Joined"
	// LifeForeign is one that another operator has joined, and that waits for its adoption.
	LifeForeign Life = "WaitsForAdoption"
	// LifeRemoving is one whose entry was removed from windows-instances. It is drained, and its host is cleaned up.
	LifeRemoving Life = "Removing"
	// LifeEnding is one that others end: the Node is being deleted, or the cluster autoscaler removes it.
	LifeEnding Life = "Ending"
)

// WaitsForAdoption is published.WaitsForAdoption.
func (n Node) WaitsForAdoption() bool {
	return published.WaitsByReport(n.Annotations, n.Report, n.ReportError)
}

// Life returns where the node is in its life, by its Node. Which host it is, is in the records alone.
func (n Node) Life() Life {
	switch version, marked := n.Annotations[published.VersionAnnotation] != "",
		n.Annotations[published.JoiningAnnotation] != ""; {
	case !n.DeletionTimestamp.IsZero(), n.HasScaleDownTaint():
		return LifeEnding
	case version && (marked || HasTaint(n.Node, RemovingTaint)):
		// the mark is left out where others have cordoned the node
		return LifeRemoving
	case marked:
		return LifeJoining
	case n.WaitsForAdoption():
		return LifeForeign
	case version:
		return LifeJoined
	}
	return LifeNew
}
