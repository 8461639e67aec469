package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// missingContents returns the contents that the steps need and the store does not have whole.
func missingContents(store *records.Store, p plan.Plan) []protocol.Missing {
	var list []protocol.Missing
	for _, step := range p.Steps {
		for _, n := range step.NeededContents() {
			listed := slices.ContainsFunc(list, func(m protocol.Missing) bool { return m.Digest == n.Digest })
			if c := n.Content; c.SHA256 != "" && (c.Size < 0 || !store.HasContent(c.SHA256)) && !listed {
				list = append(list, protocol.Missing{Digest: n.Digest, Parts: store.PartsOf(c.SHA256)})
			}
		}
	}
	return list
}

// contentsOfPlan returns every content that steps use, once: those that they need, and those of files that are written
// for their access alone.
func contentsOfPlan(p plan.Plan) []plan.Need {
	var list []plan.Need
	seen := map[string]bool{}
	for _, s := range p.Steps {
		needs := s.NeededContents()
		if s.Verb == protocol.VerbWrite && len(needs) == 0 {
			needs = []plan.Need{{Digest: s.File.Digest, Content: s.File.Content}}
		}
		for _, n := range needs {
			if !seen[n.Content.SHA256] {
				seen[n.Content.SHA256] = true
				list = append(list, n)
			}
		}
	}
	return list
}

// addCorrupt adds to what a plan misses the kept contents that are corrupt. It changes nothing on the host.
func addCorrupt(ctx context.Context, store *records.Store, p *plan.Plan) error {
	for _, n := range contentsOfPlan(*p) {
		if n.Content.SHA256 == "" || !store.HasContent(n.Content.SHA256) {
			continue
		}
		right, err := store.CheckContent(ctx, n.Content)
		if err != nil {
			return fmt.Errorf("reading kept content %s: %w", n.Digest, err)
		}
		if !right {
			p.Missing = append(p.Missing, protocol.Missing{Digest: n.Digest})
		}
	}
	return nil
}

// checkContents reads every content that steps use, before anything stops: those that were kept, and those that have
// arrived, because their parts may be from before and after an interruption and of two encodings. A corrupt one is
// removed and asked for again.
func checkContents(ctx context.Context, store *records.Store, p plan.Plan) error {
	var bad []protocol.Missing
	for _, n := range contentsOfPlan(p) {
		right, err := store.VerifyContent(ctx, n.Content)
		if err != nil {
			return fmt.Errorf("reading kept content %s: %w", n.Digest, err)
		}
		if !right {
			bad = append(bad, protocol.Missing{Digest: n.Digest})
		}
	}
	if len(bad) > 0 {
		return &RefusedError{Why: fmt.Sprintf("%s corrupt, the first is %s: send them again",
			bundle.Count(len(bad), "kept content"), bad[0].Digest), Missing: bad}
	}
	return nil
}

// checkWritable returns an error for a step that would replace a file that another program has locked: services would
// stop for it in vain.
func checkWritable(p plan.Plan, observed plan.Observed) error {
	for _, s := range p.Steps {
		if s.Verb == protocol.VerbWrite && slices.Contains(observed.Unread, s.File.Path) {
			return &FileError{Path: s.File.Path, Reason: FileLocked, Err: errors.New("it has to be replaced: close the program that has it open")}
		}
	}
	return nil
}
