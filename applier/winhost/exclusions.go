package winhost

import (
	"context"
	"slices"

	"wmco/applier"
	"wmco/bundle"
)

// defender is Microsoft Defender's list of programs that it leaves alone. Where Defender does not run, every call says
// applier.ErrNoSetting.
type defender interface {
	excluded() ([]string, error)
	exclude(program string) error
	include(program string) error
}

// exclusions keeps bundle.KindExclusion.
type exclusions struct{ defender defender }

func (e exclusions) read(_ context.Context, names []string) ([]applier.Setting, error) {
	excluded, err := e.defender.excluded()
	if err != nil {
		return nil, err
	}
	all := make([]applier.Setting, len(names))
	for i, name := range names {
		all[i] = applier.Setting{Present: holdsPath(excluded, name)}
	}
	return all, nil
}

func (e exclusions) write(_ context.Context, s applier.Setting) error {
	excluded, err := e.defender.excluded()
	if err != nil || holdsPath(excluded, s.Name) == s.Present {
		return err
	}
	if s.Present {
		return e.defender.exclude(s.Name)
	}
	return e.defender.include(s.Name)
}

func holdsPath(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return bundle.FoldPath(p) == bundle.FoldPath(path) })
}

// texts are the texts of a list of WMI, which is nothing when it is empty.
func texts(list any) []string {
	values, _ := list.([]any)
	var all []string
	for _, v := range values {
		if text, ok := v.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
