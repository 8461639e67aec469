package applier

import (
	"context"
	"fmt"
	"slices"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// situation is what the engine knows of a host before it observes it.
type situation struct {
	host  Host
	clock Clock
	// self is Engine.Self.
	self    string
	records *records.Records
	facts   bundle.Facts
	// imported is what the existing operator imported and did not remove.
	imported bundle.Bundle
	// only are the entries that the plan may change; nil is all.
	only map[bundle.EntryID]bool
}

// loadSituation reads the records and asks for the facts. A record of a newer program is a *bundle.SchemaError.
func (e *Engine) loadSituation(ctx context.Context) (*situation, error) {
	facts, err := e.Host.Facts(ctx)
	if err != nil {
		return nil, fmt.Errorf("gathering facts: %w", err)
	}
	r, err := records.LoadRecords(ctx, e.Host)
	if err != nil {
		return nil, err
	}
	if r.Ledger.Boot != facts.BootTime {
		r.Ledger.Shadows, r.Ledger.Fresh = nil, nil
	}
	s := &situation{host: e.Host, clock: e.Clock, self: e.Self, records: r, facts: facts}
	if err := s.readImported(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// targetOf returns the target of a bundle on this host: what it names, and the removal of everything else that is
// managed or that the existing operator imported.
func (s *situation) targetOf(record records.BundleRecord) *plan.Target {
	t := plan.NewTarget(record.ManifestBundle(), s.records.KnownContents(record))
	t.DropUnwanted(append(s.records.OwnedBundles(), s.imported), s.records.FoundEntries(), s.records.MadeFolders())
	return &t
}

// planCircumstances returns those of a plan for the target.
func (s *situation) planCircumstances(ctx context.Context, t *plan.Target, record records.BundleRecord) (plan.Circumstances, error) {
	c := plan.Circumstances{Owned: map[string]bool{}, Self: s.self, Only: s.only}
	if s.records.Journal.Boot == s.facts.BootTime {
		c.Restart = s.records.Journal.Restart // a boot has restarted everything
	}
	for _, b := range s.records.OwnedBundles() {
		old := plan.NewTarget(b, nil)
		for name := range old.FoldedNames() {
			c.Owned[name] = true
		}
	}
	if s.records.Damaged {
		c.Restart = t.ServiceNames()
	}
	var err error
	if c.Stale, err = s.findStaleState(ctx, record); err != nil {
		return plan.Circumstances{}, err
	}
	c.Networks = s.facts.Networks
	return c, nil
}

// setSinceBoot reports whether a variable was set after the host booted, so that no service gets it from there.
func (s *situation) setSinceBoot(name string) bool {
	if slices.Contains(s.records.Ledger.Fresh, name) {
		return true
	}
	return s.records.Journal.Boot == s.facts.BootTime && slices.ContainsFunc(s.records.Journal.Before.Settings, func(b records.SettingBefore) bool {
		return b.Kind == bundle.KindVariable && b.Name == name && !b.Present
	})
}

// freshVariables returns the variables of a target that were set after the host booted.
func (s *situation) freshVariables(t *plan.Target) []string {
	var names []string
	for _, v := range t.Settings {
		if v.Kind == bundle.KindVariable && v.Present && s.setSinceBoot(v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

// maskedVariables returns the variables that the host had when it booted and has no longer.
func (s *situation) maskedVariables(t *plan.Target, observed plan.Observed) []string {
	names := slices.Clone(s.records.Ledger.Shadows)
	for _, v := range t.Settings {
		switch {
		case v.Kind != bundle.KindVariable:
		case v.Present:
			names = slices.DeleteFunc(names, func(n string) bool { return n == v.Name })
		case observed.Settings[v.ID()].Present && !slices.Contains(names, v.Name) && !s.setSinceBoot(v.Name):
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

// observeAndPlan observes the host and plans.
func (s *situation) observeAndPlan(ctx context.Context, t *plan.Target, record records.BundleRecord, full bool) (plan.Observed, plan.Plan, error) {
	observed, c, err := s.surveyHost(ctx, t, record, full)
	if err != nil {
		return plan.Observed{}, plan.Plan{}, err
	}
	p := plan.Make(t, observed, c)
	p.Missing = append(p.Missing, missingContents(s.records.Store, p)...)
	return observed, p, nil
}

// surveyHost observes the host, and gathers what else a plan depends on.
func (s *situation) surveyHost(ctx context.Context, t *plan.Target, record records.BundleRecord, full bool) (plan.Observed, plan.Circumstances, error) {
	o := observer{host: s.host, cache: s.records.Cache, full: full, now: s.clock.Now(), applied: s.appliedFiles()}
	observed, err := o.observeTarget(ctx, t)
	if err != nil {
		return plan.Observed{}, plan.Circumstances{}, err
	}
	for _, path := range observed.Unread {
		s.records.Notes = append(s.records.Notes, path+" is locked by another program: its contents were not compared")
	}
	for _, x := range t.Settings {
		if why := observed.Settings[x.ID()].Unknown; why != "" {
			s.records.Notes = append(s.records.Notes, string(x.ID())+" was not compared: "+why)
		}
	}
	c, err := s.planCircumstances(ctx, t, record)
	c.Shadows = s.maskedVariables(t, observed)
	return observed, c, err
}

// appliedFiles returns the contents of the files of the bundle that was applied last.
func (s *situation) appliedFiles() map[string]plan.Content {
	files := map[string]plan.Content{}
	t := plan.NewTarget(s.records.Ledger.Bundle.ManifestBundle(), s.records.Ledger.Bundle.KnownContents())
	for _, f := range t.Files {
		if f.Kind == plan.FileRegular {
			files[bundle.FoldPath(f.Path)] = f.Content
		}
	}
	return files
}

// limitToChanges limits the plan to the entries in which a bundle differs from the one that was applied last.
func (s *situation) limitToChanges(record records.BundleRecord) {
	s.only = map[bundle.EntryID]bool{}
	for _, id := range bundle.Differing(s.records.Ledger.Bundle.ManifestBundle(), record.ManifestBundle()) {
		s.only[id] = true
	}
}

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
