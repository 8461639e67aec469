package node

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"wmco/applier/remote"
	"wmco/bundle/published"
)

// nodeEvents records events on Nodes, and on what else a job is about.
type nodeEvents struct{ events.EventRecorder }

// recordOnNode sends an Event about a Node. Events with the same reason and action are one for client-go, which keeps the
// first message.
func (e nodeEvents) recordOnNode(node *corev1.Node, kind, reason, action, message string) {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	e.Eventf(ref, nil, kind, reason, action, "%s", published.Shorten(message))
}

// describeError returns the problem, and what to do.
func describeError(err error) string {
	if fix := remote.SuggestFix(err); fix != "" {
		return err.Error() + "; fix: " + fix
	}
	return err.Error()
}
