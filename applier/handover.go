package applier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/bundle"
)

// The program's own service is exchanged last, and by two processes beside the old one: the new one confirms, and a guard, which runs the
// old program as another service, rolls back if it does not.
//
//	old: every other step, healthy, confirmed --> journal: handing over --> guard starts --> own service has the new command, exit
//	new: asks for the confirmation --> removes the guard --> writes the ledger
//	guard: waits until the journal is not handing over any longer; after its time: stops the new one, rolls back, starts the old one
//
// Windows replaces no running program, so each has a file of its own. The guard's is a second name of the old one, which outlives it. A
// service and not a child process, because it must outlive a boot as well.

// guardSlack is how much longer than a confirmation may take the guard waits: the new process has to be started, after a pause of the
// service control manager.
const guardSlack = 3 * time.Minute

// guardPause is the time between two looks of the guard at the journal.
const guardPause = 2 * time.Second

// exchange gives the program's own service another command.
type exchange struct {
	host Host
	// self is Engine.Self.
	self     string
	records  *records.Records
	steps    *executor
	progress *progress
}

// withoutSelf returns a plan without the step that gives the program's own service another command, and that step; nil if there is none. The
// program that the service runs stays as well: whoever is interrupted before the exchange starts with it again. The new one removes it.
func (x exchange) withoutSelf(p plan.Plan, observed plan.Observed) (plan.Plan, *plan.Step) {
	have := observed.ServiceState(x.self)
	i := slices.IndexFunc(p.Steps, func(s plan.Step) bool {
		return s.Verb == plan.VerbPut && strings.EqualFold(s.Service.Config.Name, x.self) && s.Service.Config.CommandLine != have.CommandLine
	})
	if x.self == "" || have.Status == plan.ServiceAbsent || i < 0 {
		return p, nil
	}
	swap, program := p.Steps[i], bundle.FoldPath(bundle.Program(have.CommandLine))
	steps := p.Steps
	p.Steps = nil
	for j, s := range steps {
		path := bundle.FoldPath(s.File.Path)
		if j == i || s.Verb == plan.VerbRemove && (path == program || strings.HasPrefix(program, path+`\`)) {
			continue
		}
		p.Steps = append(p.Steps, s)
	}
	return p, &swap
}

// keepProgram gives the program that the service runs a second name for the guard, before a step moves it aside. A run that is resumed has it.
func (x exchange) keepProgram(ctx context.Context, observed plan.Observed) error {
	path := bundle.Program(observed.ServiceState(x.self).CommandLine)
	infos, err := x.host.Stat(ctx, []string{path, records.FileGuard})
	switch {
	case err != nil:
		return fmt.Errorf("observing %s: %w", path, err)
	case infos[0].Kind == plan.FileRegular:
		if err := x.host.Link(ctx, path, records.FileGuard); err != nil {
			return fmt.Errorf("keeping %s: %w", path, err)
		}
		return nil
	case infos[1].Kind == plan.FileRegular:
		return nil
	}
	return fmt.Errorf("the program %s of service %s is missing and could not be restored", path, x.self)
}

// handOver has the guard started, and the service exchanged. The caller ends this process then.
func (x exchange) handOver(ctx context.Context, swap plan.Step) error {
	j := x.records.Journal
	j.Phase = records.PhaseHandover
	if err := x.records.WriteJournal(ctx, j); err != nil {
		return err
	}
	guard := plan.ServiceConfig{
		Name: bundle.GuardService, Description: "OpenShift managed " + bundle.GuardService, Start: bundle.StartAuto,
		CommandLine: bundle.CommandLine([]string{records.FileGuard, "guard", "--service"}),
		Recovery:    bundle.Recovery{RestartAfterSeconds: []int{10}, ResetSeconds: 300},
	}
	if err := x.host.PutService(ctx, guard); err != nil {
		return err
	}
	if err := x.host.StartService(ctx, guard.Name); err != nil {
		return err
	}
	if err := nameStep(swap, x.steps.doStep(ctx, swap)); err != nil {
		return err
	}
	x.progress.countAction(swap.Action)
	return nil
}

// confirmHandover confirms the run that the program before this one has begun, if this is the new one. Until then it changes nothing, no record
// either. A run for another bundle is confirmed too, before it begins.
func (r *run) confirmHandover(ctx context.Context, d bundle.Digest) error {
	j := r.records.Journal
	switch {
	case j.Phase != records.PhaseHandover:
		return nil
	case r.engine.Self == "": // from outside, the agent's service is one of many
		return removeGuard(ctx, r.engine.Host)
	}
	observed, p, err := r.situation.observeAndPlan(ctx, r.situation.targetOf(j.Bundle), j.Bundle, false)
	if err != nil {
		return err
	}
	if _, swap := r.exchange.withoutSelf(p, observed); swap != nil {
		return nil // this is the old one still, which was interrupted
	}
	ask := r.options.Confirm
	if r.options.Resume != nil {
		ask = r.options.Resume(j.Confirmer)
	}
	if ask != nil {
		if err := r.confirmation.poll(ctx, ask, max(j.Waiting.Limit, leastWait)); err != nil {
			return &PartialError{Err: fmt.Errorf("the new node agent waits for its confirmation: %w", err)}
		}
	}
	r.confirmation.agreed = j.Bundle.Manifest.Digest == d
	return removeGuard(ctx, r.engine.Host)
}

// removeGuard removes the guard, if there is one.
func removeGuard(ctx context.Context, host Host) error {
	infos, err := host.Stat(ctx, []string{records.FileGuard})
	if err != nil || infos[0].Kind == plan.FileAbsent {
		return err
	}
	if err := host.StopService(ctx, bundle.GuardService); err != nil {
		return err
	}
	if err := host.DeleteService(ctx, bundle.GuardService); err != nil {
		return err
	}
	if err := host.Remove(ctx, records.FileGuard); err != nil {
		return fmt.Errorf("removing %s: %w", records.FileGuard, err)
	}
	return nil
}

// GuardHandover waits until the process that took over has confirmed, and rolls back if it does not. Agent is the service that it runs as.
func (e *Engine) GuardHandover(ctx context.Context, agent string) (Outcome, error) {
	guard := *e
	guard.Self = ""
	begun := e.Clock.SinceBoot()
	for {
		phase, limit, err := guard.handingOver(ctx)
		limit = cmp.Or(e.GuardWait, limit+guardSlack)
		var newer *bundle.SchemaError
		switch late := e.Clock.SinceBoot()-begun > limit; {
		case errors.As(err, &newer):
			return Outcome{}, nil // a newer program writes its records when it is confirmed
		case err != nil: // another look
		case phase == records.PhaseHandover && late:
			// From here on to the end: the new agent may confirm at this moment, and stop the guard that stops it. Neither would start it again.
			ctx := context.WithoutCancel(ctx)
			if err := e.Host.StopService(ctx, agent); err != nil {
				return Outcome{}, err
			}
			return guard.restoreAgent(ctx, agent, fmt.Errorf("the new node agent did not confirm the bundle within %s", limit))
		case phase == records.PhaseRollback:
			return guard.restoreAgent(ctx, agent, errors.New("an earlier rollback was interrupted"))
		case phase != records.PhaseHandover:
			return Outcome{}, nil
		}
		select {
		case <-ctx.Done():
			return Outcome{}, ctx.Err()
		case <-e.Clock.After(guardPause):
		}
	}
}

// handingOver returns the phase of the run that is under way, and how long its confirmation may take.
func (e *Engine) handingOver(ctx context.Context) (records.Phase, time.Duration, error) {
	r, err := records.LoadRecords(ctx, e.Host)
	if err != nil {
		return "", 0, err
	}
	return r.Journal.Phase, r.Journal.Waiting.Limit, nil
}

// guardLock is how long the guard waits for another run.
const guardLock = time.Minute

// restoreAgent rolls back, unless somebody else has ended the run meanwhile, and starts the agent.
func (e *Engine) restoreAgent(ctx context.Context, agent string, why error) (Outcome, error) {
	r := newRun(e, Options{LockWait: guardLock})
	r.repairs = true
	return r.end("", r.whileLocked(ctx, func() error {
		if err := r.openRecords(ctx); err != nil {
			return err
		}
		switch r.records.Journal.Phase { //nolint:exhaustive // somebody else has gone on
		case records.PhaseHandover, records.PhaseRollback:
			r.rollback.guards = true
			return r.rollback.undo(ctx, why)
		default:
			r.progress.result = ResultSame
			return e.Host.StartService(ctx, agent)
		}
	}))
}

// Undone is a bundle that was rolled back by a process that could not report it; zero if none was.
type Undone struct {
	Bundle bundle.Digest
	// Why is why, and Log the end of the log of the service because of which; it is empty where no service was.
	Why string
	Log bundle.LogTail
}

// UnreportedRollback returns what was rolled back by a process that could not report it. It removes the guard that did it.
func (e *Engine) UnreportedRollback(ctx context.Context) (Undone, error) {
	u, err := records.ReadUndone(ctx, e.Host)
	undone := Undone{Bundle: u.Bundle}
	undone.Why, undone.Log = splitReason(u.Reason)
	if err != nil || !u.Guarded {
		return undone, err
	}
	return undone, newRun(e, Options{LockWait: guardLock}).whileLocked(ctx, func() error { // until the guard has ended its run
		if err := removeGuard(ctx, e.Host); err != nil {
			return err
		}
		u.Guarded = false
		return records.WriteUndone(ctx, e.Host, u)
	})
}

// ForgetUndone is for a bundle that was applied since.
func (e *Engine) ForgetUndone(ctx context.Context) error {
	return e.Host.Remove(ctx, records.FileUndone)
}
