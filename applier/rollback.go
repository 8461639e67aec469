package applier

import (
	"context"
	"errors"
	"fmt"

	"wmco/applier/plan"
	"wmco/applier/records"
)

// rollBackChange rolls back because of err. An interrupted run is not rolled back: the next run resumes it.
func (r *run) rollBackChange(ctx context.Context, why error) error {
	if ctx.Err() != nil {
		return &PartialError{Err: fmt.Errorf("interrupted: %w", why)}
	}
	if r.progress.log.IsZero() { // a rollback that is resumed has it from its journal
		r.progress.log = r.tailLog(ctx, why)
	}
	r.progress.emit(Event{Event: EventRollback, Message: why.Error(), Log: r.progress.log})
	if err := r.restoreBefore(ctx, why); err != nil {
		return &PartialError{Err: &UnfinishedError{Why: why, Err: err}}
	}
	r.progress.result = ResultRolledBack
	return &RolledBackError{Err: why}
}

// restoreBefore applies the state in the journal, by the same steps as anything else, and removes the journal.
func (r *run) restoreBefore(ctx context.Context, why error) error {
	j, reason := r.records.Journal, joinReason(why.Error(), r.progress.log)
	j.Phase, j.Reason = records.PhaseRollback, reason
	if err := r.records.WriteJournal(ctx, j); err != nil {
		return err
	}
	if r.guards {
		// Before the agent starts, which asks for it.
		u := records.Undone{Program: r.Program, Time: r.Clock.Now(), Bundle: j.Bundle.Manifest.Digest, Reason: reason, Guarded: true}
		if err := records.WriteUndone(ctx, r.Host, u); err != nil {
			return err
		}
	}
	t := j.Before.TargetBefore()
	o := observer{host: r.Host, cache: r.records.Cache, full: true, now: r.Clock.Now()}
	observed, err := o.observeTarget(ctx, &t)
	if err != nil {
		return err
	}
	r.steps.shadows = r.records.Ledger.Shadows
	p := plan.Make(&t, observed, plan.Circumstances{
		Owned: map[string]bool{}, Self: r.Self, Restart: r.restartAgain(&t, observed), Shadows: r.steps.shadows, Networks: r.situation.facts.Networks,
	})
	if len(p.Missing) > 0 {
		return errors.New("cached content is missing")
	}
	if len(p.Unknown) > 0 {
		return fmt.Errorf("restoring %s: %s", p.Unknown[0], observed.Settings[p.Unknown[0]].Unknown)
	}
	r.progress.done, r.progress.total = 0, len(p.Steps)
	if err := r.steps.doSteps(ctx, p.Steps); err != nil {
		return err
	}
	if err := r.checkRunning(ctx, &t); err != nil {
		return err
	}
	if err := r.awaitingBoot(ctx, &t); err != nil {
		return err
	}
	sweepAfter(ctx, r.Host, p)
	if r.progress.restartSelf && !r.guards && !errors.Is(why, ErrDiskFull) { // what the disk had no room for is tried again
		u := records.Undone{Program: r.Program, Time: r.Clock.Now(), Bundle: j.Bundle.Manifest.Digest, Reason: reason}
		if err := records.WriteUndone(ctx, r.Host, u); err != nil {
			return err
		}
	}
	if err := r.removeGuard(ctx); err != nil {
		return err
	}
	return r.records.RemoveJournal(ctx)
}

// awaitingBoot notes the settings that take effect with the next boot although the host was rolled back.
func (r *run) awaitingBoot(ctx context.Context, t *plan.Target) error {
	var names []plan.Setting
	for _, s := range t.Settings {
		names = append(names, plan.Setting{Kind: s.Kind, Name: s.Name})
	}
	have, err := r.Host.Settings(ctx, names)
	if err != nil {
		return fmt.Errorf("observing settings: %w", err)
	}
	r.progress.pending = nil
	for i, s := range have {
		if s.Pending {
			r.progress.pending = append(r.progress.pending, names[i].ID())
		}
	}
	return nil
}

// restartAgain returns services that ran before and run now: they may have read a file that is being restored.
func (r *run) restartAgain(t *plan.Target, observed plan.Observed) []string {
	var names []string
	for _, s := range t.Services {
		if s.Run && observed.ServiceState(s.Config.Name).Status != plan.ServiceStopped {
			names = append(names, s.Config.Name)
		}
	}
	return names
}

// checkRunning returns an error if a service that ran before does not run again. Its health is not checked.
func (r *run) checkRunning(ctx context.Context, t *plan.Target) error {
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
