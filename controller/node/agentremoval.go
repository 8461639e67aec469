package node

import (
	"context"
	"fmt"
	"time"

	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/windowsnode"
)

// agentLimit is how long a node agent may take to begin a removal, and then to end it, before the host is cleaned up over
// SSH.
const agentLimit = 10 * time.Minute

// signLimit is how long a removal waits until this operator can sign, which begins with the first pass of the rollout.
const signLimit = time.Minute

// Signer signs for Nodes. signing.Keys implements it, with one counter for everything that the operator signs.
type Signer interface {
	SignDesired(node published.NodeID, d published.Desired) (string, error)
}

// agentRemovals has node agents remove everything from their hosts. It writes the annotation that otherwise the rollout
// alone writes, in one patch with the end of the node, which the API server refuses if the Node has changed since it was
// read. So neither overwrites the other, and the rollout tells a node that was told to end nothing else
// (controller/rollout/plan).
type agentRemovals struct {
	joiner      *configure.Joiner
	readDesired windowsnode.DesiredReader
	signer      Signer
	// seen is since when agents have been told, or have begun.
	seen configure.Sightings
}

// tellAgent tells the agent of a drained node to remove everything, if it can: from here on the host is no node any
// longer. Only what this operator has signed for the Node before is signed again.
func (ar *agentRemovals) tellAgent(ctx context.Context, node windowsnode.Node) (told bool, err error) {
	if ar.signer == nil || !removesItself(node) {
		return false, nil
	}
	signed, err := ar.readDesired(node)
	if err != nil || signed.Bundle == "" {
		return false, nil //nolint:nilerr // its agent accepts nothing then, or has nothing: SSH
	}
	text, err := ar.signer.SignDesired(node.ID(), signed.ToRemove())
	if err != nil { // the rollout has not begun to sign yet
		return ar.seen.SeenFor(node.Name, "not signed", ar.joiner.Elapsed()) < signLimit, nil //nolint:nilerr // as above
	}
	_, err = ar.joiner.WriteMarks(ctx, node.Node, configure.Marks{Annotations: map[string]string{
		configure.VersionAnnotation: "", published.DesiredAnnotation: text,
	}})
	return true, err
}

// removesItself reports whether the agent of a node can remove everything from its host.
func removesItself(node windowsnode.Node) bool {
	return node.ReportError == nil && !node.Report.Adopting && node.Report.Has(published.FeatureRemove)
}

// isAwaited reports whether the agent of a node that was told has time to answer. One that is off or silent has none: if
// it comes back, it removes everything nevertheless.
func (ar *agentRemovals) isAwaited(node windowsnode.Node) bool {
	begun := node.ReportError == nil && node.Report.Removal.HasBegunFor(node.ID())
	since := ar.seen.SeenFor(node.Name, fmt.Sprint(node.UID, begun), ar.joiner.Elapsed())
	lives := node.IsReady() && !ar.joiner.Silence.IsSilent(node)
	return since < agentLimit && (begun || lives)
}
