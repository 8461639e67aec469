package applier

import (
	"context"
	"errors"
	"fmt"
)

// undo puts back what there was before the application, because of err. What an interruption left is not undone: the next
// run takes it up.
func (r *run) undo(ctx context.Context, why error) error {
	if ctx.Err() != nil {
		return &PartialError{Err: fmt.Errorf("interrupted: %w", why)}
	}
	r.emit(Event{Event: EventRollback, Message: why.Error()})
	if err := r.restore(ctx); err != nil {
		return &PartialError{Err: fmt.Errorf("%w; rolling back: %w", why, err)}
	}
	r.result = ResultRolledBack
	return &RolledBackError{Err: why}
}

// restore applies what the journal remembers, by the same steps as anything else, and removes the journal.
func (r *run) restore(ctx context.Context) error {
	j := r.s.journal
	j.Phase = phaseRollback
	if err := r.enter(ctx, j); err != nil {
		return err
	}
	t := j.Before.target()
	o := observer{host: r.Host, cache: r.s.cache, full: true, now: r.Clock.Now()}
	seen, err := o.observe(ctx, &t)
	if err != nil {
		return err
	}
	r.shadows = r.s.ledger.Shadows
	p := makePlan(&t, seen, circumstances{
		owned: map[string]bool{}, self: r.Self, restart: r.mixed(&t, seen), shadows: r.shadows, networks: r.s.facts.Networks,
	})
	if len(p.missing) > 0 {
		return errors.New("a content that was kept is gone")
	}
	r.done, r.total = 0, len(p.steps)
	if err := r.carryOut(ctx, p); err != nil {
		return err
	}
	if err := r.running(ctx, &t); err != nil {
		return err
	}
	if err := r.awaitingBoot(ctx, &t); err != nil {
		return err
	}
	r.sweepAfter(ctx, p)
	return r.forget(ctx)
}

// awaitingBoot notes what the machine goes on with until its next boot, though it was put back.
func (r *run) awaitingBoot(ctx context.Context, t *target) error {
	var names []Setting
	for _, s := range t.settings {
		names = append(names, Setting{Kind: s.Kind, Name: s.Name})
	}
	have, err := r.Host.Settings(ctx, names)
	if err != nil {
		return fmt.Errorf("observing settings: %w", err)
	}
	r.pending = nil
	for i, s := range have {
		if s.Pending {
			r.pending = append(r.pending, names[i].ID())
		}
	}
	return nil
}

// mixed are services that ran before and run now: they may have read what is being put back.
func (r *run) mixed(t *target, seen observed) []string {
	var names []string
	for _, s := range t.services {
		if s.run && seen.service(s.config.Name).Status != ServiceStopped {
			names = append(names, s.config.Name)
		}
	}
	return names
}

// running tells whether the services that ran before run again. Whether they are healthy is as it was.
func (r *run) running(ctx context.Context, t *target) error {
	states, err := r.Host.Services(ctx, t.serviceNames())
	if err != nil {
		return err
	}
	for i, name := range t.serviceNames() {
		for _, s := range t.services {
			if s.config.Name == name && s.run && name != r.Self && states[i].Status != ServiceRunning {
				return &ServiceError{Name: name, Doing: "restoring", Err: errors.New("it is " + statusText(states[i].Status))}
			}
		}
	}
	return nil
}

// forget ends an application: its journal goes, then what was only kept for it.
func (r *run) forget(ctx context.Context) error {
	for _, path := range []string{fileJournal, fileConfirm} {
		if err := r.Host.Remove(ctx, path); err != nil {
			return fmt.Errorf("removing %s: %w", path, err)
		}
	}
	r.s.journal, r.s.cut, r.applying = journal{}, false, false
	needed := map[string]bool{}
	for _, c := range r.s.ledger.Bundle.Contents {
		needed[c.SHA256] = true
	}
	r.s.store.sweep(ctx, needed)
	r.s.cache.save(ctx, r.s.records)
	return nil
}
