package applier

import (
	"context"
	"fmt"

	"wmco/bundle"
)

// checkNode refuses a bundle for another Node than the one that this host is, as a *RefusedError. Which one that is say the bundle that was
// applied last and, where that names none, the client certificate of the kubelet.
func (e *Engine) checkNode(ctx context.Context, s *situation, m bundle.Manifest) error {
	name := m.NodeName()
	if name == "" || e.ChangeNode {
		return nil
	}
	have, from := s.Ledger.Bundle.Manifest.NodeName(), "the bundle that was applied last"
	if have == "" && e.NodeName != nil {
		var err error
		if have, err = e.NodeName(ctx); err != nil {
			return err
		}
		from = "the client certificate of its kubelet"
	}
	if have == "" || have == name {
		return nil
	}
	return &RefusedError{Why: fmt.Sprintf("the bundle is for node %s, and this host is node %s by %s (fix: apply the bundle of node %s; if the host is to become node %s, apply with --change-node)", name, have, from, have, name)}
}
