package applier

import (
	"context"
	"fmt"
	"slices"

	"wmco/render/bundle"
)

// stale are the paths with state that belongs to another cluster: the ledger says so, or the machine has yet to join and we
// have never been here. It is removed before anything starts, since old certificates and addresses keep a node from
// joining.
func (e *Engine) stale(ctx context.Context, s *situation, r bundleRecord) ([]string, error) {
	b := r.bundle()
	paths := slices.Clone(s.journal.Stale)
	for _, l := range b.Layers() {
		for _, state := range l.State {
			if !s.othersState(state, l.Stage) {
				continue
			}
			there, err := e.statePaths(ctx, state)
			if err != nil {
				return nil, err
			}
			paths = append(paths, there...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// othersState tells whether what stands at the path of a state belongs to another cluster.
func (s *situation) othersState(state bundle.State, stage bundle.Stage) bool {
	if state.Cluster == "" {
		return false
	}
	known := false
	for _, b := range s.bundles() {
		for _, l := range b.Layers() {
			for _, old := range l.State {
				if bundle.FoldPath(old.Path) != bundle.FoldPath(state.Path) || old.Cluster == "" {
					continue
				}
				if old.Cluster == state.Cluster {
					return false
				}
				known = true
			}
		}
	}
	never := s.ledger.applied() == "" && !s.cut && !s.blind
	return known || never && stage == bundle.StageJoin
}

// statePaths are what is there of a state: the path itself, or the files in it that the pattern names.
func (e *Engine) statePaths(ctx context.Context, state bundle.State) ([]string, error) {
	if state.Pattern == "" {
		infos, err := e.Host.Stat(ctx, []string{state.Path})
		if err != nil || infos[0].Kind == FileAbsent {
			return nil, err
		}
		return []string{state.Path}, nil
	}
	infos, err := e.Host.List(ctx, state.Path)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", state.Path, err)
	}
	var paths []string
	for _, f := range infos {
		if f.Kind == FileRegular && matches(state.Pattern, f.Path) {
			paths = append(paths, f.Path)
		}
	}
	return paths, nil
}

// removeTree removes a path with all that is in it, the inner ones first. Links are removed and not followed.
func (e *Engine) removeTree(ctx context.Context, path string) error {
	infos, err := e.Host.Stat(ctx, []string{path})
	if err != nil {
		return err
	}
	if infos[0].Kind == FileDirectory {
		children, err := e.Host.List(ctx, path)
		if err != nil {
			return err
		}
		for _, c := range children {
			if err := e.removeTree(ctx, c.Path); err != nil {
				return err
			}
		}
	}
	return e.Host.Remove(ctx, path)
}
