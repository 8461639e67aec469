package applier

import (
	"context"
	"fmt"
	"slices"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// findStaleState returns what belongs to another cluster than the bundle's, and what an earlier run found and did not
// remove.
func (s *situation) findStaleState(ctx context.Context, record records.BundleRecord) (plan.Stale, error) {
	b := record.ManifestBundle()
	found := plan.Stale{Paths: slices.Clone(s.records.Journal.Stale.Paths), Networks: slices.Clone(s.records.Journal.Stale.Networks)}
	for _, l := range b.Layers() {
		for _, state := range l.State {
			if !s.fromAnother(bundle.FoldPath(state.Path), state.Cluster, l.Stage) {
				continue
			}
			there, err := statePaths(ctx, s.host, state)
			if err != nil {
				return plan.Stale{}, err
			}
			found.Paths = append(found.Paths, there...)
		}
		for _, n := range l.Networks {
			if !s.fromAnother(string(bundle.KindNetwork.ID(n.Name)), n.Cluster, l.Stage) {
				continue
			}
			if err := s.checkNetworks(); err != nil {
				return plan.Stale{}, err
			}
			if s.facts.Network(n.Name).Name != "" {
				found.Networks = append(found.Networks, n.Name)
			}
		}
	}
	slices.Sort(found.Paths)
	slices.Sort(found.Networks)
	return plan.Stale{Paths: slices.Compact(found.Paths), Networks: slices.Compact(found.Networks)}, nil
}

// checkNetworks returns an error if the HNS networks of the host are not known.
func (s *situation) checkNetworks() error {
	if !s.facts.IsUnknown(bundle.PartNetworks) {
		return nil
	}
	return fmt.Errorf("looking for HNS networks of a cluster: %s", s.facts.ErrorOf(bundle.PartNetworks))
}

// fromAnother reports whether state under a name, which programs of the cluster write, is from another cluster: our
// records say so, or the host has yet to join and we have no records of it.
func (s *situation) fromAnother(name, cluster string, stage bundle.Stage) bool {
	if cluster == "" {
		return false
	}
	known := false
	for _, b := range s.records.OwnedBundles() {
		for _, l := range b.Layers() {
			switch owner := clusterOf(l, name); owner {
			case "":
			case cluster:
				return false
			default:
				known = true
			}
		}
	}
	never := s.records.Ledger.AppliedDigest() == "" && !s.records.Interrupted && !s.records.Damaged
	return known || never && stage == bundle.StageJoin
}

// clusterOf returns the cluster that a folded path of state, or a network by its entry, belongs to in a layer.
func clusterOf(l bundle.Layer, name string) string {
	for _, state := range l.State {
		if bundle.FoldPath(state.Path) == name && state.Cluster != "" {
			return state.Cluster
		}
	}
	for _, n := range l.Networks {
		if string(bundle.KindNetwork.ID(n.Name)) == name {
			return n.Cluster
		}
	}
	return ""
}

// statePaths returns the paths of a state that exist: the path itself, or the files in it that match the pattern.
func statePaths(ctx context.Context, host Host, state bundle.State) ([]string, error) {
	if state.Pattern == "" {
		infos, err := host.Stat(ctx, []string{state.Path})
		if err != nil || infos[0].Kind == plan.FileAbsent {
			return nil, err
		}
		return []string{state.Path}, nil
	}
	infos, err := host.List(ctx, state.Path)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", state.Path, err)
	}
	var paths []string
	for _, f := range infos {
		if f.Kind == plan.FileRegular && plan.MatchesPattern(state.Pattern, f.Path) {
			paths = append(paths, f.Path)
		}
	}
	return paths, nil
}
