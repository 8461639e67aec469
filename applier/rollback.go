package applier

import (
	"context"
	"errors"
	"fmt"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// rollback restores what was there before a run.
type rollback struct {
	situation *situation
	steps     *executor
	progress  *progress
	// program is Engine.Program.
	program string
	// guards reports whether this is bundle.GuardService.
	guards bool
}

// undoRun rolls back because of an error. An interrupted run is not rolled back: the next run resumes it.
func (b rollback) undoRun(ctx context.Context, why error) error {
	if ctx.Err() != nil {
		return &PartialError{Err: fmt.Errorf("interrupted: %w", why)}
	}
	if b.progress.log.IsZero() { // a rollback that is resumed has it from its journal
		b.progress.log = b.tailLog(ctx, why)
	}
	b.progress.sendEvent(protocol.Event{Event: protocol.EventRollback, Message: why.Error(), Log: b.progress.log})
	if err := b.restoreBefore(ctx, why); err != nil {
		return &PartialError{Err: &UnfinishedError{Why: why, Err: err}}
	}
	b.progress.result = protocol.ResultRolledBack
	return &RolledBackError{Err: why}
}

// restoreBefore applies the state in the journal, by the same steps as anything else, and removes the journal.
func (b rollback) restoreBefore(ctx context.Context, why error) error {
	s := b.situation
	j, reason := s.records.Journal, joinReason(why.Error(), b.progress.log)
	j.Phase, j.Reason = records.PhaseRollback, reason
	if err := s.records.WriteJournal(ctx, j); err != nil {
		return err
	}
	if b.guards { // before the agent starts, which asks for it
		if err := b.recordUndone(ctx, reason); err != nil {
			return err
		}
	}
	t := j.Before.TargetBefore()
	b.steps.shadows = s.records.Ledger.Shadows
	p, err := b.planBefore(ctx, &t)
	if err != nil {
		return err
	}
	b.progress.done, b.progress.total = 0, len(p.Steps)
	if err := b.steps.doSteps(ctx, p.Steps); err != nil {
		return err
	}
	if err := b.checkRunning(ctx, &t); err != nil {
		return err
	}
	if err := b.notePending(ctx, &t); err != nil {
		return err
	}
	sweepAfter(ctx, s.host, p)
	if !b.guards {
		if b.progress.restartSelf && !errors.Is(why, ErrDiskFull) { // what the disk had no room for is retried
			if err := b.recordUndone(ctx, reason); err != nil {
				return err
			}
		}
		if err := removeGuard(ctx, s.host); err != nil {
			return err
		}
	}
	return s.records.RemoveJournal(ctx)
}

// recordUndone records that the bundle was rolled back, for a process that reports it.
func (b rollback) recordUndone(ctx context.Context, reason string) error {
	s := b.situation
	return records.WriteUndone(ctx, s.host, records.Undone{
		Program: b.program, Time: s.clock.Now(), Bundle: s.records.Journal.Bundle.Manifest.Digest, Reason: reason, Guarded: b.guards,
	})
}

// planBefore returns the plan that restores what was there before.
func (b rollback) planBefore(ctx context.Context, t *plan.Target) (plan.Plan, error) {
	s := b.situation
	o := observer{host: s.host, cache: s.records.Cache, full: true, now: s.clock.Now()}
	observed, err := o.observeTarget(ctx, t)
	if err != nil {
		return plan.Plan{}, err
	}
	p := plan.Make(t, observed, plan.Circumstances{
		Owned: map[string]bool{}, Self: s.self, Restart: restartAgain(t, observed), Shadows: b.steps.shadows, Networks: s.facts.Networks,
	})
	switch {
	case len(p.Missing) > 0:
		err = errors.New("cached content is missing")
	case len(p.Unknown) > 0:
		err = fmt.Errorf("restoring %s: %s", p.Unknown[0], observed.Settings[p.Unknown[0]].Unknown)
	}
	return p, err
}

// notePending notes the settings that take effect with the next boot although the host was rolled back.
func (b rollback) notePending(ctx context.Context, t *plan.Target) error {
	have := plan.Observed{Settings: map[bundle.EntryID]plan.Setting{}}
	if err := (observer{host: b.situation.host}).readSettings(ctx, t, &have); err != nil {
		return err
	}
	b.progress.pending = nil
	for _, s := range t.Settings {
		if have.Settings[s.ID()].Pending {
			b.progress.pending = append(b.progress.pending, s.ID())
		}
	}
	return nil
}

// restartAgain returns services that ran before and run now: they may have read a file that is being restored.
func restartAgain(t *plan.Target, observed plan.Observed) []string {
	var names []string
	for _, s := range t.Services {
		if s.Run && observed.ServiceState(s.Config.Name).Status != plan.ServiceStopped {
			names = append(names, s.Config.Name)
		}
	}
	return names
}

// checkRunning returns an error if a service that ran before does not run again. Its health is not checked.
func (b rollback) checkRunning(ctx context.Context, t *plan.Target) error {
	states, err := b.situation.host.Services(ctx, t.ServiceNames())
	if err != nil {
		return err
	}
	for i, name := range t.ServiceNames() {
		for _, s := range t.Services {
			if s.Config.Name == name && s.Run && name != b.situation.self && states[i].Status != plan.ServiceRunning {
				return &ServiceError{Name: name, Doing: "restoring", Err: errors.New("it is " + statusText(states[i].Status))}
			}
		}
	}
	return nil
}
