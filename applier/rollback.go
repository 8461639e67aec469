package applier

import (
	"context"
	"errors"
	"fmt"

	"wmco/applier/plan"
	"wmco/applier/records"
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
	j := r.s.Journal
	j.Phase = records.PhaseRollback
	if err := r.enter(ctx, j); err != nil {
		return err
	}
	t := j.Before.Target()
	o := observer{host: r.Host, cache: r.s.Cache, full: true, now: r.Clock.Now()}
	seen, err := o.observe(ctx, &t)
	if err != nil {
		return err
	}
	r.shadows = r.s.Ledger.Shadows
	p := plan.Make(&t, seen, plan.Circumstances{
		Owned: map[string]bool{}, Self: r.Self, Restart: r.mixed(&t, seen), Shadows: r.shadows, Networks: r.s.facts.Networks,
	})
	if len(p.Missing) > 0 {
		return errors.New("a content that was kept is gone")
	}
	r.done, r.total = 0, len(p.Steps)
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
func (r *run) awaitingBoot(ctx context.Context, t *plan.Target) error {
	var names []plan.Setting
	for _, s := range t.Settings {
		names = append(names, plan.Setting{Kind: s.Kind, Name: s.Name})
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
func (r *run) mixed(t *plan.Target, seen plan.Observed) []string {
	var names []string
	for _, s := range t.Services {
		if s.Run && seen.Service(s.Config.Name).Status != plan.ServiceStopped {
			names = append(names, s.Config.Name)
		}
	}
	return names
}

// running tells whether the services that ran before run again. Whether they are healthy is as it was.
func (r *run) running(ctx context.Context, t *plan.Target) error {
	states, err := r.Host.Services(ctx, t.ServiceNames())
	if err != nil {
		return err
	}
	for i, name := range t.ServiceNames() {
		for _, s := range t.Services {
			if s.Config.Name == name && s.Run && name != r.Self && states[i].Status != plan.ServiceRunning {
				return &ServiceError{Name: name, Doing: "restoring", Err: errors.New("it is " + statusText(states[i].Status))}
			}
		}
	}
	return nil
}

// forget ends an application.
func (r *run) forget(ctx context.Context) error {
	if err := r.s.RemoveJournal(ctx); err != nil {
		return err
	}
	r.applying = false
	return nil
}
