package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"wmco/bundle"
)

// replacedWithin is how long a changed bundle may take to be published after the facts were reported from which it is
// rendered.
const replacedWithin = 30 * time.Second

// errReplaced ends an attempt because another bundle is published now; the next step follows it.
var errReplaced = errors.New("another bundle is published")

// awaitReplaced waits for another bundle if this one was rendered from networks that the host no longer has, or before
// it had them. It returns errReplaced when there is one. Facts are those on the Node while this bundle was rendered,
// nil if there were none.
//
// A node that joins has its networks before the agent reports them, and the API server may be slow to tell: without its
// networks it would be rendered without a CNI configuration, and never be Ready.
func (a *Agent) awaitReplaced(ctx context.Context, facts *bundle.Facts) error {
	now := a.reporter.canonicalFacts()
	if facts == nil || now == nil || slices.Equal(facts.Networks, now.Networks) {
		return nil
	}
	for end := a.sinceBoot() + replacedWithin; a.sinceBoot() < end; {
		if n, _ := a.latestNode(); n.Desired != a.follower.text {
			return errReplaced
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.Engine.Clock.After(confirmPause):
		}
	}
	return nil
}
