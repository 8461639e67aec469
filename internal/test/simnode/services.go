package simnode

import (
	"context"

	"wmco/applier/plan"
	"wmco/internal/hostsim/simulation"
)

// Stop stops a service, and first those that depend on it, as an administrator does with Stop-Service -Force. It
// returns what it stopped, in order.
func (m *Machine) Stop(ctx context.Context, service string) ([]string, error) {
	var stopped []string
	for _, name := range append(m.dependents(service), service) {
		if m.Status(name) == plan.ServiceStopped {
			continue
		}
		if err := m.StopService(ctx, name); err != nil {
			return stopped, err
		}
		stopped = append(stopped, name)
	}
	return stopped, nil
}

// RestartService stops a service with those that depend on it, and starts them again.
func (m *Machine) RestartService(ctx context.Context, service string) error {
	stopped, err := m.Stop(ctx, service)
	if err != nil {
		return err
	}
	for i := len(stopped) - 1; i >= 0; i-- {
		if err := m.StartService(ctx, stopped[i]); err != nil {
			return err
		}
	}
	return nil
}

// dependents are the services that depend on one, those first on which no other does.
func (m *Machine) dependents(service string) []string {
	var all []string
	m.look(func(s *simulation.State) { all = addDependents(s, service, nil) })
	return all
}

func addDependents(s *simulation.State, service string, all []string) []string {
	for _, svc := range s.Services {
		for _, d := range svc.Dependencies {
			if simulation.Key(d) == simulation.Key(service) {
				all = append(addDependents(s, svc.Name, all), svc.Name)
			}
		}
	}
	return all
}
