package steps

import (
	"context"
	"fmt"
	"slices"

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

// noteSigned notes what stands signed on a Node, and forgets what its agent does not have any longer. It reports whether what stands there is what
// this operator published last, as far as it knows: an earlier one that was put back is no evidence.
func (m *nodeMemory) noteSigned(node windowsnode.Node, on published.Desired, has published.Report) bool {
	refused := has.Refused != "" && has.Refused == bundle.Of([]byte(node.Annotations[published.DesiredAnnotation])) && m.text != has.Refused
	if on.Bundle != "" && (refused || on.Counter().Compare(m.newest) < 0) {
		return false
	}
	m.signed = slices.DeleteFunc(m.signed, func(d published.Desired) bool { return d.Bundle != has.Applied || d.Bundle == on.Bundle })
	if on.Bundle != "" {
		m.signed, m.newest = append(m.signed, on), on.Counter()
	}
	return true
}

// toldDesired returns what the node was told of the bundle that it has; false if this operator does not know to have told it. What a node reports chooses
// among that, and adds nothing.
func (m *nodeMemory) toldDesired(has bundle.Digest) (published.Desired, bool) {
	i := slices.IndexFunc(m.signed, func(d published.Desired) bool { return d.Bundle == has })
	if i < 0 {
		return published.Desired{}, false
	}
	return m.signed[i], true
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
