package steps

import (
	"context"
	"fmt"
	"maps"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

// Notary signs what is published, and knows what it has signed (controller/keys/signing).
type Notary interface {
	// BeginTerm makes what is signed from now on newer than everything before.
	BeginTerm(ctx context.Context) error
	// SignDesired returns the text of the annotation for a Node.
	SignDesired(node published.NodeID, d published.Desired) (string, error)
	// OpenDesired returns what an annotation says, if it is signed for this Node.
	OpenDesired(node published.NodeID, text string) (published.Desired, error)
}

// told is what this operator knows to have told nodes. It is kept in memory: after a start it is what stands signed on the Nodes.
type told struct {
	// texts are the digests of the annotations that this process has written last. One that the agent refuses all the same is not written again: why
	// it is refused is said on the Node.
	texts map[string]bundle.Digest
	// signed are the bundles that nodes were told of: what stands signed on the Node, and the one before it while the agent still reports it.
	signed map[string][]published.Desired
	// newest are the counters of the newest that stood on the Nodes.
	newest map[string]published.Counter
}

func newTold() told {
	return told{map[string]bundle.Digest{}, map[string][]published.Desired{}, map[string]published.Counter{}}
}

// noteSigned notes what stands signed on a Node, and forgets what its agent does not have any longer. It reports whether what stands there is what
// this operator published last, as far as it knows: an earlier one that was put back is no evidence.
func (t *told) noteSigned(node windowsnode.Node, on published.Desired, has published.Report) bool {
	refused := has.Refused != "" && has.Refused == bundle.Of([]byte(node.Annotations[published.DesiredAnnotation])) && t.texts[node.Name] != has.Refused
	if on.Bundle != "" && (refused || on.Counter().Compare(t.newest[node.Name]) < 0) {
		return false
	}
	before := t.signed[node.Name]
	kept := before[:0] // most nodes have one, as at the last call
	for _, d := range before {
		if d.Bundle == has.Applied && d.Bundle != on.Bundle {
			kept = append(kept, d)
		}
	}
	if on.Bundle != "" {
		kept, t.newest[node.Name] = append(kept, on), on.Counter()
	}
	t.signed[node.Name] = kept
	return true
}

// retainNodes forgets the nodes that are gone.
func (t *told) retainNodes(nodes map[string]windowsnode.Node) {
	isGone := func(name string) bool { _, ok := nodes[name]; return !ok }
	maps.DeleteFunc(t.texts, func(name string, _ bundle.Digest) bool { return isGone(name) })
	maps.DeleteFunc(t.signed, func(name string, _ []published.Desired) bool { return isGone(name) })
	maps.DeleteFunc(t.newest, func(name string, _ published.Counter) bool { return isGone(name) })
}

// toldDesired returns what a node was told of the bundle that it has; false if this operator does not know to have told it. What a node reports chooses
// among that, and adds nothing.
func (t *told) toldDesired(node string, has bundle.Digest) (published.Desired, bool) {
	for _, d := range t.signed[node] {
		if d.Bundle == has {
			return d, true
		}
	}
	return published.Desired{}, false
}

// openSigned returns what this operator has told a Node; zero if what stands there is not signed by it.
func (e *Executor) openSigned(node windowsnode.Node) published.Desired {
	d, err := e.Notary.OpenDesired(node.ID(), node.Annotations[published.DesiredAnnotation])
	if err != nil {
		return published.Desired{}
	}
	return d
}

// sourceOfStep is what a step publishes on a Node.
func (e *Executor) sourceOfStep(node windowsnode.Node, to target, permit bundle.Impact) plan.Source {
	from := plan.Source{Told: e.openSigned(node), Sign: func(d published.Desired) (string, error) {
		d.PermitFor = 0
		if d.MaxImpact.Rank() > bundle.ImpactRestart.Rank() {
			d.PermitFor = int64(to.permitFor.Seconds())
		}
		return e.Notary.SignDesired(node.ID(), d)
	}}
	if to.known {
		from.Wanted = to.DesiredAnnotation(e.Namespace, permit)
	}
	return from
}

// beginSigning has this process sign.
func (e *Executor) beginSigning(ctx context.Context) error {
	if err := e.Notary.BeginTerm(ctx); err != nil {
		return fmt.Errorf("preparing to sign what is published: %w", err)
	}
	return nil
}
