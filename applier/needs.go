package applier

import (
	"context"
	"fmt"
	"slices"

	"wmco/applier/plan"
)

// lacking are contents that the steps need and the store does not have whole.
func (s *situation) lacking(p plan.Plan) []plan.Missing {
	var list []plan.Missing
	for _, step := range p.Steps {
		for _, n := range step.Needs() {
			seen := slices.ContainsFunc(list, func(m plan.Missing) bool { return m.Digest == n.Digest })
			if c := n.Content; c.SHA256 != "" && (c.Size < 0 || !s.Store.Has(c.SHA256)) && !seen {
				list = append(list, plan.Missing{Digest: n.Digest, Parts: s.Store.Indexes(c.SHA256)})
			}
		}
	}
	return list
}

// rotten reads the contents that steps need and that were kept earlier, before anything stops. What has rotted is removed
// and asked for.
func (r *run) rotten(ctx context.Context, p plan.Plan) error {
	var bad []plan.Missing
	read := map[string]bool{}
	for _, s := range p.Steps {
		for _, n := range s.Needs() {
			sum := n.Content.SHA256
			if r.s.Store.Arrived(sum) || read[sum] {
				continue
			}
			read[sum] = true
			whole, err := r.s.Store.Verified(ctx, n.Content)
			if err != nil {
				return fmt.Errorf("reading content of %s: %w", s.Entry, err)
			}
			if !whole {
				bad = append(bad, plan.Missing{Digest: n.Digest})
			}
		}
	}
	if len(bad) > 0 {
		return &RefusedError{Why: fmt.Sprintf("%d kept contents have rotted, the first is %s: send them again", len(bad), bad[0].Digest), Missing: bad}
	}
	return nil
}
