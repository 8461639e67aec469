package applier

import (
	"context"
	"errors"
	"slices"
	"strings"

	"wmco/applier/plan"
)

// startService starts a service, and records that it did. It runs with its present configuration then, and with the
// files that were written before: where the service control manager has started it since it was observed, as it does
// with a service that has crashed some time after that
// (learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_failure_actionsw), its process may have read what was
// there before, and is ended first.
func (x *executor) startService(ctx context.Context, s plan.Step) error {
	x.progress.restarted++
	name := s.Service.Config.Name
	var ended []string
	if s.Fresh {
		var err error
		if ended, err = x.endEarlyStart(ctx, name); err != nil {
			return err
		}
	}
	if err := x.host.StartService(ctx, name); err != nil {
		return err
	}
	for _, dependent := range slices.Backward(ended) {
		if err := x.host.StartService(ctx, dependent); err != nil {
			return err
		}
	}
	j := x.records.Journal
	if !slices.Contains(j.Restart, name) {
		return nil
	}
	j.Restart = slices.DeleteFunc(slices.Clone(j.Restart), func(n string) bool { return n == name })
	return x.records.WriteJournal(ctx, j)
}

// endEarlyStart stops a service that runs although it was stopped, and returns the services that were stopped for it,
// in that order: Windows refuses to stop one before those that depend on it.
func (x *executor) endEarlyStart(ctx context.Context, name string) ([]string, error) {
	process, err := x.host.ServiceProcess(ctx, name)
	if err != nil || process == 0 {
		return nil, err
	}
	x.progress.addNote("service " + name + " was started in between by the service control manager: it is started again, as its configuration may have changed since")
	var stopped []string
	return stopped, x.stopWithDependents(ctx, name, name, &stopped)
}

// stopWithDependents adds the dependents that it stopped.
func (x *executor) stopWithDependents(ctx context.Context, name, first string, stopped *[]string) error {
	states, err := x.host.Services(ctx, []string{name})
	if err != nil {
		return err
	}
	if strings.EqualFold(name, x.self) {
		return &ServiceError{Name: first, Doing: "stopping", Err: errors.New("the service of this program depends on it")}
	}
	for _, d := range states[0].Dependents {
		if slices.Contains(*stopped, d) {
			continue
		}
		if err := x.stopWithDependents(ctx, d, first, stopped); err != nil {
			return err
		}
	}
	if name != first {
		*stopped = append(*stopped, name)
	}
	return x.host.StopService(ctx, name)
}
