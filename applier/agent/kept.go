package agent

import (
	"context"
	"errors"

	"wmco/applier"
	"wmco/applier/protocol"
)

// applyOrKeep is fetchAndApply, but for a bundle that the host has and that is published no longer: other nodes have
// moved on, and this one waits for its turn. An agent that has just started asks for it once more. Its own comparison
// with the last applied bundle, which is made before, shows that nothing is missing: it needs nothing of the cluster.
func (a *Agent) applyOrKeep(ctx context.Context) (applier.Outcome, error) {
	has := a.has
	a.has = "" // what follows may change that
	outcome, err := a.fetchAndApply(ctx)
	switch {
	case err == nil && (outcome.Result == protocol.ResultSame || outcome.Result == protocol.ResultApplied):
		a.has = a.follower.desired.Bundle
	case errors.Is(err, ErrNotPublished): // nothing was begun
		a.has = has
		if has == a.follower.desired.Bundle {
			var same applier.Outcome
			same.Result, same.Bundle = protocol.ResultSame, has
			return same, nil
		}
	}
	return outcome, err
}
