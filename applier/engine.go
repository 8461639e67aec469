package applier

import (
	"context"
	"errors"
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
	*records.Records
	facts bundle.Facts
}

// load reads the records and asks for the facts. A record of a newer program is a *bundle.SchemaError.
func (e *Engine) load(ctx context.Context) (*situation, error) {
	facts, err := e.Host.Facts(ctx)
	if err != nil {
		return nil, fmt.Errorf("gathering facts: %w", err)
	}
	r, err := records.Open(ctx, e.Host)
	if err != nil {
		return nil, err
	}
	if r.Ledger.Boot != facts.BootTime {
		r.Ledger.Shadows, r.Ledger.Fresh = nil, nil
	}
	return &situation{Records: r, facts: facts}, nil
}

// want is the target of a bundle on this host: what it names, and that what is ours otherwise goes.
func (s *situation) want(r records.Bundle) *plan.Target {
	t := plan.NewTarget(r.Bundle(), s.Known(r))
	t.Drop(s.Bundles(), s.Found(), s.Folders())
	return &t
}

// circumstances are those of a plan for the target.
func (e *Engine) circumstances(ctx context.Context, s *situation, t *plan.Target, r records.Bundle) (plan.Circumstances, error) {
	c := plan.Circumstances{Owned: map[string]bool{}, Self: e.Self}
	if s.Journal.Boot == s.facts.BootTime {
		c.Restart = s.Journal.Restart // a boot has started everything anew
	}
	for _, b := range s.Bundles() {
		old := plan.NewTarget(b, nil)
		for name := range old.Names() {
			c.Owned[name] = true
		}
	}
	if s.Damaged {
		c.Restart = t.ServiceNames()
	}
	var err error
	if c.Stale, err = e.findStale(ctx, s, r); err != nil {
		return plan.Circumstances{}, err
	}
	c.Networks = s.facts.Networks
	return c, nil
}

// setSinceBoot tells whether a variable came after the machine booted, so that no service gets it from there.
func (s *situation) setSinceBoot(name string) bool {
	if slices.Contains(s.Ledger.Fresh, name) {
		return true
	}
	return s.Journal.Boot == s.facts.BootTime && slices.ContainsFunc(s.Journal.Before.Settings, func(b records.SettingBefore) bool {
		return b.Kind == bundle.KindVariable && b.Name == name && !b.Present
	})
}

// shadows are the variables that the machine had when it booted and has no more.
func shadows(s *situation, t *plan.Target, seen plan.Observed) []string {
	names := slices.Clone(s.Ledger.Shadows)
	for _, v := range t.Settings {
		switch {
		case v.Kind != bundle.KindVariable:
		case v.Present:
			names = slices.DeleteFunc(names, func(n string) bool { return n == v.Name })
		case seen.Settings[v.ID()].Present && !slices.Contains(names, v.Name) && !s.setSinceBoot(v.Name):
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	return names
}

// look observes the host and plans.
func (e *Engine) look(ctx context.Context, s *situation, t *plan.Target, r records.Bundle, full bool) (plan.Observed, plan.Plan, error) {
	o := observer{host: e.Host, cache: s.Cache, full: full, now: e.Clock.Now()}
	seen, err := o.observe(ctx, t)
	if err != nil {
		return plan.Observed{}, plan.Plan{}, err
	}
	c, err := e.circumstances(ctx, s, t, r)
	if err != nil {
		return plan.Observed{}, plan.Plan{}, err
	}
	c.Shadows = shadows(s, t, seen)
	p := plan.Make(t, seen, c)
	p.Missing = append(p.Missing, s.lacking(p)...)
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
	record := records.Bundle{Manifest: r.Manifest, Contents: r.Contents}
	t := s.want(record)
	_, p, err := e.look(ctx, s, t, record, full)
	if err != nil {
		return Observation{}, err
	}
	if s.Ledger.Applied() != "" {
		s.SaveCache(ctx)
	}
	return e.observation(s, record, p), nil
}

func (e *Engine) observation(s *situation, r records.Bundle, p plan.Plan) Observation {
	o := Observation{
		Schema: Schema, Program: e.Program, Bundle: r.Manifest.Digest, Applied: s.Ledger.Applied(),
		InSync: len(p.Steps) == 0 && !s.Cut, Impact: p.Impact(), Actions: p.Actions(), Restarts: p.Restarts(),
		Missing: p.Missing, Foreign: p.Foreign, Adopt: p.Adopt, RebootPending: p.Pending, Waiting: p.Waiting, Notes: s.Notes, Facts: s.facts,
	}
	if s.Cut {
		o.Interrupted = s.Journal.Bundle.Manifest.Digest
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
