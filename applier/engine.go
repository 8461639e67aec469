package applier

import (
	"context"
	"fmt"
	"slices"
	"time"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// Engine applies bundles to one host.
type Engine struct {
	Host  Host
	Clock Clock
	// Permits returns why no bundle may have something that this one has, such as a foreign service; cmd/wmco-node has layout.Check. An
	// engine without it refuses every bundle. What records name is removed and restored without it.
	Permits func(bundle.Bundle) error
	// Program is the version of the program that runs the engine.
	Program string
	// Owner is what others read who find the host locked.
	Owner string
	// Self is the service that the program runs as, if it does. It is never stopped: the program itself acts on
	// Outcome.RestartSelf.
	Self string
	// NodeName returns the name in the client certificate of the kubelet, empty where there is none. Nil is a host without a kubelet.
	NodeName func(context.Context) (string, error)
	// ChangeNode accepts the bundle of another Node than the one that the host is.
	ChangeNode bool
	// Reset is the name of the Node that this host may stop being: a bundle with which a host joins is refused on the host of any other.
	Reset string
	// Emit receives the events of a run; nil drops them.
	Emit func(Event)
	// GuardWait is how long GuardHandover waits for a confirmation; 0 is the time that the confirmation may take, and guardSlack.
	GuardWait time.Duration
	// guards reports whether this is bundle.GuardService.
	guards bool
	// Settle limits how long services have to stay healthy, for hosts whose services do not change by themselves. 0 is no
	// limit.
	Settle time.Duration
	// Backoff is what the repairs of this engine remember.
	Backoff Backoff
}

// ComparisonInterval is the time between two comparisons of a node agent with default settings: within it, the agent ends an interrupted run.
const ComparisonInterval = 5 * time.Minute

// Clock reports the time and waits.
type Clock interface {
	Now() time.Time
	// SinceBoot returns how long the host has run since it booted. Setting its clock does not change it.
	SinceBoot() time.Duration
	// After sends once d has passed.
	After(d time.Duration) <-chan time.Time
}

// Options are how a bundle is applied.
type Options struct {
	// DryRun stops before the first write.
	DryRun bool
	// MaxImpact refuses a plan of a higher impact; empty allows everything.
	MaxImpact bundle.Impact
	// Reboot lets the engine reboot the host if something waits for it.
	Reboot bool
	// RemoveSigningKeys accepts a bundle without signing keys (bundle.SigningKeysFile) on a host that an earlier bundle gave some. Only Apply uses it.
	RemoveSigningKeys bool
	// Full reads all files, whatever the cache has.
	Full bool
	// OnlyChanges leaves drift alone: only what the bundle that was applied last does not have is changed. Only Apply uses it.
	OnlyChanges bool
	// LockWait is how long to wait while another run has the host locked.
	LockWait time.Duration
	// OnlyInterrupted ends an interrupted run, and repairs nothing: without one, what differs is only reported. Only Repair uses it.
	OnlyInterrupted bool
	// Restart are services that are restarted although nothing differs. Only Repair uses it.
	Restart []string
	// Confirm is called when all services are healthy; its error rolls back. Nil confirms at once.
	Confirm func(context.Context) error
	// ConfirmWithin is how long Confirm may take.
	ConfirmWithin time.Duration
	// Confirmer names whom Confirm asks, for a process that takes up the run after an interruption.
	Confirmer string
	// Resume returns the Confirm of an interrupted run with this Confirmer. Without one, what waits for a confirmation goes on to
	// wait for Engine.Confirm. Apply uses it only for a run that the program before this one has handed over.
	Resume func(confirmer string) func(context.Context) error
}

// Outcome is how a run ended.
type Outcome struct {
	Event
	// RestartSelf reports whether the service Self has another configuration than it runs with.
	RestartSelf bool
	// Resumed reports whether the run was begun by another process, which was interrupted.
	Resumed bool
	// Unknown are the kinds of settings that could not be read and were left alone.
	Unknown []bundle.UnknownFact
}

// situation is what the engine knows of a host before it observes it.
type situation struct {
	*records.Records
	facts bundle.Facts
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
	s := &situation{Records: r, facts: facts}
	if err := s.readImported(ctx, e.Host); err != nil {
		return nil, err
	}
	return s, nil
}

// targetOf returns the target of a bundle on this host: what it names, and the removal of everything else that is managed or that
// the existing operator imported.
func (s *situation) targetOf(record records.BundleRecord) *plan.Target {
	t := plan.NewTarget(record.ManifestBundle(), s.KnownContents(record))
	t.DropUnwanted(append(s.OwnedBundles(), s.imported), s.FoundEntries(), s.MadeFolders())
	return &t
}

// planCircumstances returns those of a plan for the target.
func (e *Engine) planCircumstances(ctx context.Context, s *situation, t *plan.Target, record records.BundleRecord) (plan.Circumstances, error) {
	c := plan.Circumstances{Owned: map[string]bool{}, Self: e.Self, Only: s.only}
	if s.Journal.Boot == s.facts.BootTime {
		c.Restart = s.Journal.Restart // a boot has restarted everything
	}
	for _, b := range s.OwnedBundles() {
		old := plan.NewTarget(b, nil)
		for name := range old.FoldedNames() {
			c.Owned[name] = true
		}
	}
	if s.Damaged {
		c.Restart = t.ServiceNames()
	}
	var err error
	if c.Stale, err = e.findStaleState(ctx, s, record); err != nil {
		return plan.Circumstances{}, err
	}
	c.Networks = s.facts.Networks
	return c, nil
}

// setSinceBoot reports whether a variable was set after the host booted, so that no service gets it from there.
func (s *situation) setSinceBoot(name string) bool {
	if slices.Contains(s.Ledger.Fresh, name) {
		return true
	}
	return s.Journal.Boot == s.facts.BootTime && slices.ContainsFunc(s.Journal.Before.Settings, func(b records.SettingBefore) bool {
		return b.Kind == bundle.KindVariable && b.Name == name && !b.Present
	})
}

// maskedVariables returns the variables that the host had when it booted and has no longer.
func maskedVariables(s *situation, t *plan.Target, observed plan.Observed) []string {
	names := slices.Clone(s.Ledger.Shadows)
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
func (e *Engine) observeAndPlan(ctx context.Context, s *situation, t *plan.Target, record records.BundleRecord, full bool) (plan.Observed, plan.Plan, error) {
	observed, c, err := e.surveyHost(ctx, s, t, record, full)
	if err != nil {
		return plan.Observed{}, plan.Plan{}, err
	}
	p := plan.Make(t, observed, c)
	p.Missing = append(p.Missing, s.missingContents(p)...)
	return observed, p, nil
}

// surveyHost observes the host, and gathers what else a plan depends on.
func (e *Engine) surveyHost(ctx context.Context, s *situation, t *plan.Target, record records.BundleRecord, full bool) (plan.Observed, plan.Circumstances, error) {
	o := observer{host: e.Host, cache: s.Cache, full: full, now: e.Clock.Now(), applied: s.appliedFiles()}
	observed, err := o.observeTarget(ctx, t)
	if err != nil {
		return plan.Observed{}, plan.Circumstances{}, err
	}
	for _, path := range observed.Unread {
		s.Notes = append(s.Notes, path+" is locked by another program: what is in it was not compared")
	}
	for _, x := range t.Settings {
		if why := observed.Settings[x.ID()].Unknown; why != "" {
			s.Notes = append(s.Notes, string(x.ID())+" was not compared: "+why)
		}
	}
	c, err := e.planCircumstances(ctx, s, t, record)
	c.Shadows = maskedVariables(s, t, observed)
	return observed, c, err
}

// appliedFiles returns the contents of the files of the bundle that was applied last.
func (s *situation) appliedFiles() map[string]plan.Content {
	files := map[string]plan.Content{}
	t := plan.NewTarget(s.Ledger.Bundle.ManifestBundle(), s.Ledger.Bundle.KnownContents())
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
	for _, id := range bundle.Differing(s.Ledger.Bundle.ManifestBundle(), record.ManifestBundle()) {
		s.only[id] = true
	}
}

// Observe compares the host with a manifest. Contents are those of it that the sender has. It writes nothing but the cache.
func (e *Engine) Observe(ctx context.Context, m bundle.Manifest, contents []archive.Content, full bool) (Observation, error) {
	return e.compareManifest(ctx, m, contents, Options{Full: full})
}

// ObserveChanges is Observe without drift: it compares what the bundle that was applied last does not have.
func (e *Engine) ObserveChanges(ctx context.Context, m bundle.Manifest, contents []archive.Content) (Observation, error) {
	return e.compareManifest(ctx, m, contents, Options{OnlyChanges: true})
}

func (e *Engine) compareManifest(ctx context.Context, m bundle.Manifest, contents []archive.Content, o Options) (Observation, error) {
	record, err := e.admitBundle(m, contents)
	if err != nil {
		return Observation{}, err
	}
	s, err := e.loadSituation(ctx)
	if err != nil {
		return Observation{}, wrapAsFault(err)
	}
	if err := e.checkNodeName(ctx, s, m); err != nil {
		return Observation{}, wrapAsFault(err)
	}
	if o.OnlyChanges {
		s.limitToChanges(record)
	}
	t := s.targetOf(record)
	_, p, err := e.observeAndPlan(ctx, s, t, record, o.Full)
	if err == nil {
		err = s.addCorrupt(ctx, &p)
	}
	if err != nil {
		return Observation{}, wrapAsFault(err)
	}
	if s.Ledger.AppliedDigest() != "" {
		s.SaveCache(ctx)
	}
	return e.observationOf(ctx, s, record, p)
}

func (e *Engine) observationOf(ctx context.Context, s *situation, record records.BundleRecord, p plan.Plan) (Observation, error) {
	refusals, err := e.refusalNotes(ctx, record, p)
	o := Observation{
		Schema: Schema, Program: e.Program, Bundle: record.Manifest.Digest, Applied: s.Ledger.AppliedDigest(),
		InSync: len(p.Steps)+len(p.Unknown) == 0 && !s.Interrupted, Impact: p.HighestImpact(), Actions: p.ShownActions(), Restarts: p.RestartedServices(),
		Missing: p.Missing, Foreign: p.Foreign, Adopt: p.Adopt, RebootPending: p.Pending, Waiting: p.Waiting, Notes: append(slices.Clone(s.Notes), refusals...), Facts: s.facts,
	}
	if s.Interrupted {
		o.Interrupted = s.Journal.Bundle.Manifest.Digest
	}
	return o, wrapAsFault(err)
}
