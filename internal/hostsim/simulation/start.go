package simulation

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wmco/applier/plan"
	"wmco/bundle"
)

// StartService implements applier.Services. What the service depends on is started first.
func (h *Host) StartService(ctx context.Context, name string) error {
	return h.change(ctx, Operation{VerbStart, name}, func(s *State) error {
		return asServiceError(name, "starting", h.start(s, name, &starting{store: h.Storage.State}))
	})
}

// starting is a start in progress.
type starting struct {
	store Store
	// chain is the services that wait for the one that is being started.
	chain []string
}

func (h *Host) start(s *State, name string, w *starting) error {
	svc, ok := s.Services[Key(name)]
	switch {
	case !ok:
		return ErrServiceDoesNotExist
	case svc.Deleted:
		return ErrServiceMarkedForDelete
	case svc.Status == plan.ServiceRunning:
		return nil
	case svc.Status == plan.ServicePending:
		return ErrServiceAlreadyRunning
	case svc.Start == plan.StartDisabled:
		return ErrServiceDisabled
	case slices.Contains(w.chain, Key(name)):
		return ErrCircularDependency
	}
	waiting := &starting{store: w.store, chain: append(slices.Clip(w.chain), Key(name))}
	for _, d := range svc.Dependencies {
		if err := h.startDependency(s, d, waiting); err != nil {
			return err
		}
	}
	return h.run(s, svc, w.store)
}

func (h *Host) startDependency(s *State, name string, w *starting) error {
	if _, ok := s.Services[Key(name)]; !ok {
		return fmt.Errorf("%w: %s", ErrServiceDependencyAbsent, name)
	}
	err := h.start(s, name, w)
	var code SystemError
	if errors.As(err, &code) {
		return fmt.Errorf("%w: %s: %w", ErrServiceDependencyFail, name, err)
	}
	return err
}

// run starts the program of a service and saves the result.
func (h *Host) run(s *State, svc Service, store Store) error {
	b := s.Script.behaviour(svc.Name)
	svc.Argv, svc.Delivered = SplitCommandLine(s.expand(svc.CommandLine)), svc.Environment
	svc.Boot, svc.Asked, svc.Killed, svc.Starts = s.Boot, nil, false, svc.Starts+1
	var err error
	if svc.Processes, err = h.processes(s, svc.Argv, b.Child); err != nil {
		return err
	}
	starts, err := h.holds(b.Needs)
	if err != nil {
		return err
	}
	svc.Status = plan.ServiceRunning
	var ends error
	switch {
	case !starts || b.Start == StartExits:
		svc.Status, svc.Processes, ends = plan.ServiceStopped, nil, ErrProcessAborted
	case b.Start == StartHangs:
		svc.Status, ends = plan.ServicePending, ErrServiceRequestTimeout
	}
	s.Services[Key(svc.Name)] = svc
	if err := store.Save(s); err != nil {
		return err
	}
	return ends
}

var reference = regexp.MustCompile(`%[^%]+%`)

// expand replaces %NAME% by the value of the variable, as Windows does in the command line of a service. Other names
// stay.
func (s *State) expand(line string) string {
	return reference.ReplaceAllStringFunc(line, func(name string) string {
		if x, ok := s.Settings[SettingKey(bundle.KindVariable, strings.Trim(name, "%"))]; ok {
			return x.Value
		}
		return name
	})
}

// processes returns the processes of a command: its program, the programs among its arguments, which a wrapper such as
// kube-log-runner starts, and a child.
func (h *Host) processes(s *State, argv []string, child string) ([]Process, error) {
	if len(argv) == 0 {
		return nil, ErrFileNotFound
	}
	var all []Process
	for i, arg := range append(slices.Clone(argv), child) {
		if i > 0 && !isProgram(arg) {
			continue
		}
		id, err := h.fileID(arg)
		if err != nil {
			return nil, fmt.Errorf("reading the ID of %s: %w", arg, err)
		}
		if id == "" && i == 0 {
			return nil, fmt.Errorf("%w: %s", ErrFileNotFound, arg)
		}
		if id != "" {
			all = append(all, s.process(id))
		}
	}
	return all, nil
}

func isProgram(arg string) bool {
	return isPath(arg) && strings.HasSuffix(bundle.FoldPath(arg), ".exe")
}

// process returns a new process. The process IDs of Windows are multiples of four.
func (s *State) process(file string) Process {
	s.LastProcess += 4
	return Process{ID: s.LastProcess, Boot: s.Boot, File: file}
}

// StartProcess runs a program that belongs to no service, until the next boot or EndProcess.
func (h *Host) StartProcess(ctx context.Context, path string) (Process, error) {
	var p Process
	err := h.itself(ctx, func(s *State) error {
		id, err := h.fileID(path)
		if err == nil && id == "" {
			err = ErrFileNotFound
		}
		if err != nil {
			return fmt.Errorf("starting %s: %w", path, err)
		}
		p = s.process(id)
		s.Processes = append(slices.Clip(s.Processes), p)
		return h.Own.State.Save(s)
	})
	return p, err
}

// EndProcess ends a process of StartProcess.
func (h *Host) EndProcess(ctx context.Context, p Process) error {
	return h.Edit(ctx, func(s *State) {
		s.Processes = slices.DeleteFunc(slices.Clone(s.Processes), func(q Process) bool { return p == q })
	})
}
