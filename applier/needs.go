package applier

import (
	"context"
	"fmt"
	"slices"

	"wmco/applier/plan"
	"wmco/bundle"
)

// missing returns the contents that the steps need and the store does not have whole.
func (s *situation) missing(p plan.Plan) []plan.Missing {
	var list []plan.Missing
	for _, step := range p.Steps {
		for _, n := range step.Needs() {
			listed := slices.ContainsFunc(list, func(m plan.Missing) bool { return m.Digest == n.Digest })
			if c := n.Content; c.SHA256 != "" && (c.Size < 0 || !s.Store.Has(c.SHA256)) && !listed {
				list = append(list, plan.Missing{Digest: n.Digest, Parts: s.Store.PartsOf(c.SHA256)})
			}
		}
	}
	return list
}

// checkContents reads the contents that steps need and that were kept earlier, before anything stops. A corrupt one is
// removed and asked for again.
func (r *run) checkContents(ctx context.Context, p plan.Plan) error {
	var bad []plan.Missing
	read := map[string]bool{}
	for _, s := range p.Steps {
		for _, n := range s.Needs() {
			sum := n.Content.SHA256
			if r.situation.Store.Arrived(sum) || read[sum] {
				continue
			}
			read[sum] = true
			whole, err := r.situation.Store.Verify(ctx, n.Content)
			if err != nil {
				return fmt.Errorf("reading content of %s: %w", s.Entry, err)
			}
			if !whole {
				bad = append(bad, plan.Missing{Digest: n.Digest})
			}
		}
	}
	if len(bad) > 0 {
		return &RefusedError{Why: fmt.Sprintf("%s corrupt, the first is %s: send them again", bundle.Count(len(bad), "kept content"), bad[0].Digest), Missing: bad}
	}
	return nil
}
