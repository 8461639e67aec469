package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"wmco/bundle"
	"wmco/bundle/archive"
)

// Engine applies bundles to one host.
type Engine struct {
	Host  Host
	Clock Clock
	// Program is the version of the program that the engine is in.
	Program string
	// Owner is what holds the lock of the host, for those who find it locked.
	Owner string
	// Self is the service that the program runs as, if it does. It is never stopped: when it must start anew, that is the
	// program's own business (Outcome.RestartSelf).
	Self string
	// Emit takes the events of an application; nil drops them.
	Emit func(Event)
}

// Clock tells the time and waits.
type Clock interface {
	Now() time.Time
	// After yields once d has passed.
	After(d time.Duration) <-chan time.Time
}

// Options are how a bundle is applied.
type Options struct {
	// DryRun stops before the first write.
	DryRun bool
	// MaxImpact refuses a plan that costs more; empty allows everything.
	MaxImpact bundle.Impact
	// Reboot lets the engine reboot the machine where something waits for it.
	Reboot bool
	// Full reads all files, whatever the cache says.
	Full bool
	// LockWait is how long to wait for another one who is changing the host.
	LockWait time.Duration
	// Confirm is asked when everything is healthy; its error rolls back. Nil confirms at once.
	Confirm func(context.Context) error
	// ConfirmWithin is how long Confirm may take.
	ConfirmWithin time.Duration
}

// Outcome is how an application ended.
type Outcome struct {
	Event
	// RestartSelf tells that the service Self has another configuration than it runs with.
	RestartSelf bool
}

// situation is what the engine knows of a host before it looks at it.
type situation struct {
	records records
	store   *store
	cache   *cache
	ledger  ledger
	journal journal
	// cut tells that an application was cut: there is a journal.
	cut bool
	// blind tells that a record was damaged: services may run with what they read before a change.
	blind bool
	notes []string
	facts bundle.Facts
}

// load reads the records. A damaged one is noted and set aside, one of a newer program is a *bundle.SchemaError.
func (e *Engine) load(ctx context.Context) (*situation, error) {
	s := &situation{records: records{e.Host}}
	var err error
	if s.store, err = openStore(ctx, e.Host); err != nil {
		return nil, err
	}
	if s.facts, err = e.Host.Facts(ctx); err != nil {
		return nil, fmt.Errorf("gathering facts: %w", err)
	}
	err = s.records.read(ctx, fileLedger, "ledger", &s.ledger)
	if err == nil {
		err = s.ledger.check()
	}
	if err = s.tolerate(err, "the ledger is damaged: what it knew to be ours and is no longer wanted stays"); err != nil {
		return nil, err
	}
	if s.blind {
		s.ledger = ledger{}
	}
	if err := s.loadJournal(ctx); err != nil {
		return nil, err
	}
	s.cache = readCache(ctx, s.records)
	if s.ledger.Boot != s.facts.BootTime {
		s.ledger.Shadows, s.ledger.Fresh = nil, nil
	}
	return s, nil
}

func (s *situation) loadJournal(ctx context.Context) error {
	err := s.records.read(ctx, fileJournal, "journal", &s.journal)
	if err == nil {
		err = s.journal.check()
	}
	damaged := err != nil
	if err := s.tolerate(err, "the journal is damaged: what a cut application replaced cannot be put back"); err != nil {
		return err
	}
	if damaged {
		s.journal = journal{}
	}
	s.cut = s.journal.Schema != 0
	return nil
}

// tolerate turns damage into a note.
func (s *situation) tolerate(err error, note string) error {
	var newer *bundle.SchemaError
	var file *FileError
	if err == nil {
		return nil
	}
	if errors.As(err, &newer) || errors.As(err, &file) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if !errors.Is(err, errDamaged) && !errors.Is(err, bundle.ErrInconsistent) && !errors.Is(err, bundle.ErrPath) {
		return err
	}
	s.blind = true
	s.notes = append(s.notes, note)
	return nil
}

// owned are the bundles whose entries are ours: the one that was applied and those whose applications were cut.
func (s *situation) owned() []bundleRecord {
	var list []bundleRecord
	for _, r := range append([]bundleRecord{s.ledger.Bundle, s.journal.Bundle}, s.journal.Earlier...) {
		if r.Manifest.Digest != "" {
			list = append(list, r)
		}
	}
	return list
}

// known are the contents of all bundles that the host has seen, and of this one.
func (s *situation) known(r bundleRecord) known {
	all := known{}
	for _, o := range append(s.owned(), r) {
		for d, c := range o.known() {
			all[d] = c
		}
	}
	return all
}

// want is the target of a bundle on this host: what it names, and that what is ours otherwise goes.
func (s *situation) want(r bundleRecord) *target {
	t := aim(r.bundle(), s.known(r))
	t.drop(s.bundles(), s.found(), s.folders())
	return &t
}

func (s *situation) bundles() []bundle.Bundle {
	var list []bundle.Bundle
	for _, r := range s.owned() {
		list = append(list, r.bundle())
	}
	return list
}

// folders are those that we made though no bundle names them: parents of others.
func (s *situation) folders() []string {
	list := slices.Clone(s.ledger.Folders)
	for _, f := range s.journal.Before.Files {
		if f.Kind == FileAbsent && f.Entry == bundle.KindDirectory.ID(f.Path) {
			list = append(list, f.Path)
		}
	}
	return list
}

func (s *situation) found() map[bundle.EntryID]bool {
	found := map[bundle.EntryID]bool{}
	for _, id := range s.ledger.Found {
		found[id] = true
	}
	return found
}

// circumstances are those of a plan for the target.
func (e *Engine) circumstances(ctx context.Context, s *situation, t *target, r bundleRecord) (circumstances, error) {
	c := circumstances{owned: map[string]bool{}, self: e.Self}
	if s.journal.Boot == s.facts.BootTime {
		c.restart = s.journal.Restart // a boot has started everything anew
	}
	for _, b := range s.bundles() {
		old := aim(b, nil)
		for name := range old.names() {
			c.owned[name] = true
		}
	}
	if s.blind {
		c.restart = t.serviceNames()
	}
	var err error
	if c.stale, err = e.findStale(ctx, s, r); err != nil {
		return circumstances{}, err
	}
	c.networks = s.facts.Networks
	return c, nil
}

// setSinceBoot tells whether a variable came after the machine booted, so that no service gets it from there.
func (s *situation) setSinceBoot(name string) bool {
	if slices.Contains(s.ledger.Fresh, name) {
		return true
	}
	return s.journal.Boot == s.facts.BootTime && slices.ContainsFunc(s.journal.Before.Settings, func(b settingBefore) bool {
		return b.Kind == bundle.KindVariable && b.Name == name && !b.Present
	})
}

// shadows are the variables that the machine had when it booted and has no more.
func shadows(s *situation, t *target, seen observed) []string {
	names := slices.Clone(s.ledger.Shadows)
	for _, v := range t.settings {
		switch {
		case v.Kind != bundle.KindVariable:
		case v.Present:
			names = slices.DeleteFunc(names, func(n string) bool { return n == v.Name })
		case seen.settings[v.ID()].Present && !slices.Contains(names, v.Name) && !s.setSinceBoot(v.Name):
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

// look observes the host and plans.
func (e *Engine) look(ctx context.Context, s *situation, t *target, r bundleRecord, full bool) (observed, plan, error) {
	o := observer{host: e.Host, cache: s.cache, full: full, now: e.Clock.Now()}
	seen, err := o.observe(ctx, t)
	if err != nil {
		return observed{}, plan{}, err
	}
	c, err := e.circumstances(ctx, s, t, r)
	if err != nil {
		return observed{}, plan{}, err
	}
	c.shadows = shadows(s, t, seen)
	p := makePlan(t, seen, c)
	p.missing = append(p.missing, s.lacking(p)...)
	return seen, p, nil
}

// Observe tells how the host compares with a manifest. It writes nothing but the cache.
func (e *Engine) Observe(ctx context.Context, r *archive.Reader, full bool) (Observation, error) {
	if err := acceptable(r.Manifest); err != nil {
		return Observation{}, err
	}
	s, err := e.load(ctx)
	if err != nil {
		return Observation{}, err
	}
	record := bundleRecord{Manifest: r.Manifest, Contents: r.Contents}
	t := s.want(record)
	_, p, err := e.look(ctx, s, t, record, full)
	if err != nil {
		return Observation{}, err
	}
	if s.ledger.applied() != "" {
		s.cache.save(ctx, s.records)
	}
	return e.observation(s, record, p), nil
}

func (e *Engine) observation(s *situation, r bundleRecord, p plan) Observation {
	o := Observation{
		Schema: Schema, Program: e.Program, Bundle: r.Manifest.Digest, Applied: s.ledger.applied(),
		InSync: len(p.steps) == 0 && !s.cut, Impact: p.impact(), Actions: p.actions(), Restarts: p.restarts(),
		Missing: p.missing, Foreign: p.foreign, Adopt: p.adopt, RebootPending: p.pending, Waiting: p.waiting, Notes: s.notes, Facts: s.facts,
	}
	if s.cut {
		o.Interrupted = s.journal.Bundle.Manifest.Digest
	}
	return o
}

// lockPause is between two attempts to lock a host.
const lockPause = 200 * time.Millisecond

// lock waits for another one who is changing the host, for as long as the options say.
func (e *Engine) lock(ctx context.Context, wait time.Duration) (func() error, error) {
	begin := e.Clock.Now()
	for {
		release, err := e.Host.Lock(ctx, e.Owner)
		var locked *LockedError
		if err == nil || !errors.As(err, &locked) || e.Clock.Now().Sub(begin) >= wait {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-e.Clock.After(lockPause):
		}
	}
}
