package applier

import (
	"context"
	"fmt"
	"slices"

	"wmco/bundle"
)

// need is a content that a step needs.
type need struct {
	digest  bundle.Digest
	content content
}

// needs are the contents without which a step cannot be done. A file that is only written for its access has its own.
func (s step) needs() []need {
	switch s.Verb {
	case VerbWrite:
		if s.Reason != ReasonAccess {
			return []need{{s.file.digest, s.file.content}}
		}
	case VerbSet:
		return s.setting.value.needs()
	case VerbPut:
		var list []need
		for _, v := range s.service.variables {
			list = append(list, v.value.needs()...)
		}
		return list
	case VerbClear, VerbMake, VerbUnset, VerbStop, VerbDelete, VerbRemove, VerbStart, VerbRestore:
	}
	return nil
}

func (v value) needs() []need {
	if v.known {
		return nil
	}
	return []need{{v.digest, v.content}}
}

// lacking are contents that the steps need and the store does not have whole.
func (s *situation) lacking(p plan) []Missing {
	var list []Missing
	for _, step := range p.steps {
		for _, n := range step.needs() {
			seen := slices.ContainsFunc(list, func(m Missing) bool { return m.Digest == n.digest })
			if c := n.content; c.SHA256 != "" && (c.Size < 0 || !s.store.has(c.SHA256)) && !seen {
				list = append(list, Missing{Digest: n.digest, Parts: s.store.indexes(c.SHA256)})
			}
		}
	}
	return list
}

// rotten reads the contents that steps need and that were kept earlier, before anything stops. What has rotted is removed
// and asked for.
func (r *run) rotten(ctx context.Context, p plan) error {
	var bad []Missing
	read := map[string]bool{}
	for _, s := range p.steps {
		for _, n := range s.needs() {
			sum := n.content.SHA256
			if r.s.store.fresh[sum] || read[sum] {
				continue
			}
			read[sum] = true
			whole, err := r.s.store.sound(ctx, n.content)
			if err != nil {
				return fmt.Errorf("reading content of %s: %w", s.Entry, err)
			}
			if !whole {
				bad = append(bad, Missing{Digest: n.digest})
			}
		}
	}
	if len(bad) > 0 {
		return &RefusedError{Why: fmt.Sprintf("%d kept contents have rotted, the first is %s: send them again", len(bad), bad[0].Digest), Missing: bad}
	}
	return nil
}
