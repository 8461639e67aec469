package settings

import (
	"context"
	"slices"

	"wmco/applier/plan"
	"wmco/bundle"
)

// defender is Microsoft Defender's list of excluded processes. If Defender does not run, every call returns
// applier.ErrNoSetting.
type defender interface {
	listExclusions() ([]string, error)
	addExclusion(program string) error
	removeExclusion(program string) error
}

// exclusionKeeper keeps bundle.KindExclusion.
type exclusionKeeper struct{ defender defender }

func (e exclusionKeeper) Read(_ context.Context, names []string) ([]plan.Setting, error) {
	excluded, err := e.defender.listExclusions()
	if err != nil {
		return nil, err
	}
	all := make([]plan.Setting, len(names))
	for i, name := range names {
		all[i] = plan.Setting{Present: holdsPath(excluded, name)}
	}
	return all, nil
}

func (e exclusionKeeper) Write(_ context.Context, s plan.Setting) error {
	excluded, err := e.defender.listExclusions()
	if err != nil || holdsPath(excluded, s.Name) == s.Present {
		return err
	}
	if s.Present {
		return e.defender.addExclusion(s.Name)
	}
	return e.defender.removeExclusion(s.Name)
}

func holdsPath(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return bundle.FoldPath(p) == bundle.FoldPath(path) })
}

// textsOfList returns the strings of a list of WMI, which is nil if it is empty.
func textsOfList(list any) []string {
	values, _ := list.([]any)
	var all []string
	for _, v := range values {
		if text, ok := v.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
