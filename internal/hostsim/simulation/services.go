package simulation

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Services implements applier.Services.
func (h *Host) Services(ctx context.Context, names []string) ([]plan.ServiceState, error) {
	states := make([]plan.ServiceState, 0, len(names))
	err := h.look(ctx, func(s *State) error {
		for _, name := range names {
			state := s.serviceState(name)
			var err error
			if state.Program, err = h.programOf(s.Services[Key(name)]); err != nil {
				return err
			}
			states = append(states, state)
		}
		return nil
	})
	return states, err
}

// ServiceProcess implements applier.Services.
func (h *Host) ServiceProcess(ctx context.Context, name string) (process int, err error) {
	err = h.look(ctx, func(s *State) error {
		process = s.serviceState(name).Process
		return nil
	})
	return process, err
}

func (s *State) serviceState(name string) plan.ServiceState {
	svc, ok := s.Services[Key(name)]
	if !ok {
		return plan.ServiceState{ServiceConfig: plan.ServiceConfig{Name: name}}
	}
	state := plan.ServiceState{ServiceConfig: svc.ServiceConfig, Status: svc.Status, Dependents: s.dependents(name)}
	if svc.Deleted {
		state.Status = plan.ServiceDeleting
	}
	if svc.Status == plan.ServiceRunning && len(svc.Processes) > 0 {
		state.Process = svc.Processes[0].ID
	}
	return state
}

// programOf returns where the program of a running service is now: one that was replaced has been moved aside.
func (h *Host) programOf(svc Service) (string, error) {
	if svc.Status != plan.ServiceRunning || len(svc.Processes) == 0 || len(svc.Argv) == 0 {
		return "", nil
	}
	const most = 100
	for path, serial := svc.Argv[0], 1; serial < most; path, serial = plan.AsideName(svc.Argv[0], strconv.Itoa(serial)), serial+1 {
		if id, err := h.fileID(path); err != nil || id == svc.Processes[0].File {
			return path, err
		}
	}
	return "", nil
}

// dependents returns the running services that depend on one, directly or indirectly, as EnumDependentServices does.
func (s *State) dependents(name string) []string {
	found := map[string]string{}
	s.addDependents(name, found)
	return slices.Sorted(maps.Values(found))
}

func (s *State) addDependents(name string, found map[string]string) {
	for key, svc := range s.Services {
		if svc.Status == plan.ServiceStopped || found[key] != "" || !svc.dependsOn(name) {
			continue
		}
		found[key] = svc.Name
		s.addDependents(svc.Name, found)
	}
}

func (svc Service) dependsOn(name string) bool {
	return slices.ContainsFunc(svc.Dependencies, func(d string) bool { return Key(d) == Key(name) })
}

// PutService implements applier.Services.
func (h *Host) PutService(ctx context.Context, config plan.ServiceConfig) error {
	return h.change(ctx, Operation{VerbPut, config.Name}, func(s *State) error {
		svc, ok := s.Services[Key(config.Name)]
		switch {
		case ok && svc.Deleted:
			return asServiceError(config.Name, "configuring", ErrServiceMarkedForDelete)
		case s.reaches(config.Dependencies, config.Name, map[string]bool{}):
			return asServiceError(config.Name, "configuring", ErrCircularDependency)
		case !ok:
			svc.Status, svc.Boot = plan.ServiceStopped, s.Boot
		}
		svc.ServiceConfig = config
		s.Services[Key(config.Name)] = svc
		return h.Storage.State.Save(s)
	})
}

// reaches reports whether dependencies lead to the service of that name.
func (s *State) reaches(dependencies []string, name string, seen map[string]bool) bool {
	for _, d := range dependencies {
		if Key(d) == Key(name) {
			return true
		}
		if seen[Key(d)] {
			continue
		}
		seen[Key(d)] = true
		if s.reaches(s.Services[Key(d)].Dependencies, name, seen) {
			return true
		}
	}
	return false
}

// DeleteService implements applier.Services. A running service, or one to which another program has a handle, is only
// marked for deletion, which is an error: its name is not free.
func (h *Host) DeleteService(ctx context.Context, name string) error {
	return h.change(ctx, Operation{VerbDelete, name}, func(s *State) error {
		svc, ok := s.Services[Key(name)]
		if !ok {
			return nil
		}
		svc.Deleted = true
		s.Services[Key(name)] = svc
		s.sweep(svc)
		if err := h.Storage.State.Save(s); err != nil {
			return err
		}
		if _, still := s.Services[Key(name)]; still {
			return asServiceError(name, "deleting", ErrServiceMarkedForDelete)
		}
		return nil
	})
}

// RetireService implements applier.Services.
func (h *Host) RetireService(ctx context.Context, name string) error {
	return h.change(ctx, Operation{VerbRetire, name}, func(s *State) error {
		svc, ok := s.Services[Key(name)]
		if !ok {
			return nil
		}
		svc.Deleted = true
		s.Services[Key(name)] = svc
		s.RemovedAtBoot = append(slices.Clone(s.RemovedAtBoot), bundle.Program(svc.CommandLine))
		s.sweep(svc)
		return h.Storage.State.Save(s)
	})
}

// StopService implements applier.Services.
func (h *Host) StopService(ctx context.Context, name string) error {
	return h.change(ctx, Operation{VerbStop, name}, func(s *State) error {
		svc, ok := s.Services[Key(name)]
		switch {
		case !ok || svc.Status == plan.ServiceStopped:
			return nil
		case len(s.dependents(name)) > 0:
			return asServiceError(name, "stopping", ErrDependentServices)
		}
		b := s.Script.behaviour(name)
		svc.Killed = b.Stop == StopHangs || svc.Status == plan.ServicePending
		svc.Status, svc.Processes = plan.ServiceStopped, nil
		s.Services[Key(name)] = svc
		s.sweep(svc)
		return h.Storage.State.Save(s)
	})
}
