package applier

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
)

// The program's own service is exchanged last, and by two processes beside the old one: the new one confirms, and a
// guard, which runs the old program as another service, rolls back if it does not.
//
//	old: every other step, healthy, confirmed --> journal: handing over --> guard starts --> own service has the new command, exit
//	new: asks for the confirmation --> removes the guard --> writes the ledger
//	guard: waits until the journal is not handing over any longer; after its time: stops the new one, rolls back, starts the old one
//
// Windows replaces no running program, so each has a file of its own. The guard's is a second name of the old one,
// which outlives it. A service and not a child process, because it must outlive a boot as well.

// exchange gives the program's own service another command.
type exchange struct {
	host Host
	// self is Engine.Self.
	self     string
	records  *records.Records
	steps    *executor
	progress *progress
}

// withoutSelf returns a plan without the step that gives the program's own service another command, and that step; nil
// if there is none. The program that the service runs stays as well: whoever is interrupted before the exchange starts
// with it again. The new one removes it.
func (x exchange) withoutSelf(p plan.Plan, observed plan.Observed) (plan.Plan, *plan.Step) {
	have := observed.ServiceState(x.self)
	i := slices.IndexFunc(p.Steps, func(s plan.Step) bool {
		return s.Verb == protocol.VerbPut && strings.EqualFold(s.Service.Config.Name, x.self) && s.Service.Config.CommandLine != have.CommandLine
	})
	if x.self == "" || have.Status == plan.ServiceAbsent || i < 0 {
		return p, nil
	}
	swap, program := p.Steps[i], bundle.FoldPath(bundle.Program(have.CommandLine))
	steps := p.Steps
	p.Steps = nil
	for j, s := range steps {
		path := bundle.FoldPath(s.File.Path)
		if j == i || s.Verb == protocol.VerbRemove && (path == program || strings.HasPrefix(program, path+`\`)) {
			continue
		}
		p.Steps = append(p.Steps, s)
	}
	return p, &swap
}

// keepProgram gives the program that the service runs a second name for the guard, before a step moves it aside. A run
// that is resumed has it.
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
