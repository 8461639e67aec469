package settings

import (
	"context"
	"strings"

	"wmco/applier/plan"
	"wmco/bundle"
)

// policyStore has one text for each policy.
type policyStore interface {
	getPolicy(name string) (text string, ok bool, err error)
	setPolicy(name, text string) error
	unsetPolicy(name string) error
}

// policyKeeper keeps bundle.KindPolicy. The note of a policy is what was set and what there was before, which is put
// back; without a note the policy was set by another program, and counts as absent. The note is written first and
// removed last, so that a host that is cut off in between is corrected by the next run.
type policyKeeper struct {
	// values has the numbers that Windows reads, notes the notes.
	values, notes policyStore
}

// policyNote is "SET BEFORE", or "SET" where there was nothing before.
type policyNote struct {
	set, before string
	had         bool
}

func (n policyNote) String() string {
	if !n.had {
		return n.set
	}
	return n.set + " " + n.before
}

func (p policyKeeper) readNote(name string) (policyNote, bool, error) {
	text, ok, err := p.notes.getPolicy(name)
	if err != nil || !ok {
		return policyNote{}, false, err
	}
	var n policyNote
	n.set, n.before, n.had = strings.Cut(text, " ")
	return n, true, nil
}

func (p policyKeeper) Read(ctx context.Context, names []string) ([]plan.Setting, error) {
	return ReadEach(ctx, names, func(name string) (plan.Setting, error) {
		_, noted, err := p.readNote(name)
		if err != nil || !noted {
			return plan.Setting{}, err
		}
		value, _, err := p.values.getPolicy(name)
		return plan.Setting{Value: value, Present: true}, err
	})
}

func (p policyKeeper) Write(_ context.Context, s plan.Setting) error {
	note, noted, err := p.readNote(s.Name)
	if err != nil || !noted && !s.Present {
		return err
	}
	value, ok, err := p.values.getPolicy(s.Name)
	switch {
	case err != nil:
		return err
	case !s.Present:
		return p.putBack(s.Name, note, ok && value == note.set)
	}
	if _, err := bundle.PolicyNumber(s.Value); err != nil {
		return err
	}
	if !noted {
		note.before, note.had = value, ok
	}
	if note.set != s.Value {
		note.set = s.Value
		if err := p.notes.setPolicy(s.Name, note.String()); err != nil {
			return err
		}
	}
	if ok && value == s.Value {
		return nil
	}
	return p.values.setPolicy(s.Name, s.Value)
}

// putBack puts back what there was before, unless the value was changed since: isOurs is false then.
func (p policyKeeper) putBack(name string, n policyNote, isOurs bool) error {
	var err error
	switch {
	case isOurs && n.had:
		err = p.values.setPolicy(name, n.before)
	case isOurs:
		err = p.values.unsetPolicy(name)
	}
	if err != nil {
		return err
	}
	return p.notes.unsetPolicy(name)
}
