package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"wmco/applier/protocol"
	"wmco/bundle"
)

// planServices decides which services are configured, deleted, stopped and started.
func (p *planner) planServices() {
	for _, s := range p.target.Services {
		have := p.observed.ServiceState(s.Config.Name)
		if s.Present {
			p.configureService(s, have)
		} else {
			p.unconfigureService(s, have)
		}
	}
	p.stopReaders()
	p.stopDependents()
}

func (p *planner) configureService(s WantedService, have ServiceState) {
	if s.Config.CommandLine == "" {
		return // unmanaged: it only stops and starts with the services that it depends on
	}
	a := protocol.Action{Verb: protocol.VerbPut, Entry: bundle.KindService.ID(s.Config.Name),
		Reason: protocol.ReasonAbsent, Impact: s.Impact}
	if !(have.Status != ServiceAbsent && p.sameConfig(s, have)) && p.skipsEntry(a.Entry) {
		return
	}
	if have.Status == ServiceAbsent {
		a.Impact = bundle.ImpactNone
		p.putSteps = append(p.putSteps, Step{Action: a, Service: s})
		return
	}
	if p.sameConfig(s, have) {
		p.adoptEntry(a.Entry, ServiceName(s.Config.Name))
		if have.runsAnother() && !p.skipsEntry(a.Entry) {
			p.mustStop(s.Config.Name, cause{protocol.ReasonRestart, s.Impact})
		}
		return
	}
	a.Reason = protocol.ReasonDiffers
	restarts := have.CommandLine != s.Config.CommandLine || !p.sameEnvironment(s, have)
	if !restarts || have.Status == ServiceStopped {
		a.Impact = bundle.ImpactNone
	}
	if restarts || have.Status == ServiceDeleting {
		p.mustStop(s.Config.Name, cause{protocol.ReasonRestart, s.Impact})
	}
	p.putSteps = append(p.putSteps, Step{Action: a, Service: s})
}

func (p *planner) unconfigureService(s WantedService, have ServiceState) {
	if have.Status == ServiceAbsent || have.CommandLine != "" && !runsFromRoots(have.CommandLine) {
		return // the service of this name belongs to another program
	}
	a := protocol.Action{Verb: protocol.VerbDelete, Entry: bundle.KindService.ID(s.Config.Name),
		Reason: protocol.ReasonUnwanted, Impact: s.Impact}
	if p.skipsEntry(a.Entry) {
		return
	}
	p.mustStop(s.Config.Name, cause{protocol.ReasonUnwanted, s.Impact})
	p.putSteps = append(p.putSteps, Step{Action: a, Service: s})
}

// runsAnother reports whether the process of the service runs another executable than the configured one, such as one
// that was replaced since. A path that no bundle can name does not count.
func (s ServiceState) runsAnother() bool {
	known := bundle.CheckHostPath(s.Program) == nil && inRoots(s.Program)
	return known && bundle.FoldPath(s.Program) != bundle.FoldPath(bundle.Program(s.CommandLine))
}

// runsFromRoots reports whether the program of a command, as bundle.CommandLine quotes it, is in one of the roots.
func runsFromRoots(command string) bool {
	program := bundle.Program(command)
	return bundle.CheckHostPath(program) == nil && inRoots(program)
}

// sameConfig compares everything that the service control manager keeps. Recovery is not compared if the host does not
// know it (a reset period of -1).
func (p *planner) sameConfig(s WantedService, have ServiceState) bool {
	recovery := have.Recovery.ResetSeconds == -1 ||
		have.Recovery.ResetSeconds == s.Config.Recovery.ResetSeconds &&
			slices.Equal(have.Recovery.RestartAfterSeconds, s.Config.Recovery.RestartAfterSeconds)
	return recovery && have.Status != ServiceDeleting && have.Description == s.Config.Description && have.Start == s.Config.Start &&
		have.CommandLine == s.Config.CommandLine && sameNames(have.Dependencies, s.Config.Dependencies) &&
		p.sameEnvironment(s, have) && p.sameShadows(s, have)
}

// sameNames compares sets of service names, which Windows compares without regard to case.
func sameNames(a, b []string) bool {
	fold := func(list []string) []string {
		var out []string
		for _, s := range list {
			out = append(out, strings.ToLower(s))
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(fold(a), fold(b))
}

// sameEnvironment compares variables, except those that hide a variable of the host: adding or removing these needs no
// restart.
func (p *planner) sameEnvironment(s WantedService, have ServiceState) bool {
	observed := map[string]string{}
	for _, line := range have.Environment {
		name, text, _ := strings.Cut(line, "=")
		observed[strings.ToUpper(name)] = text
	}
	for _, v := range s.Variables {
		text, ok := observed[strings.ToUpper(v.Name)]
		if !ok || !v.Value.EqualsText(text) {
			return false
		}
		delete(observed, strings.ToUpper(v.Name))
	}
	for _, text := range observed {
		if text != "" {
			return false
		}
	}
	return true
}

// sameShadows compares what sameEnvironment leaves out.
func (p *planner) sameShadows(s WantedService, have ServiceState) bool {
	want := s.HiddenVariables(p.circumstances.Shadows)
	return !slices.ContainsFunc(want, func(line string) bool { return !slices.Contains(have.Environment, line) }) &&
		len(have.Environment) == len(s.Variables)+len(want)
}

// HiddenVariables returns the variables that the service gets with an empty value because the host had them when it
// booted.
func (s WantedService) HiddenVariables(shadows []string) []string {
	var lines []string
	for _, name := range shadows {
		if !slices.ContainsFunc(s.Variables, func(v Variable) bool { return strings.EqualFold(v.Name, name) }) {
			lines = append(lines, name+"=")
		}
	}
	return lines
}

// mustStop stops a service if it runs. The cause with the highest impact is shown.
func (p *planner) mustStop(name string, c cause) {
	have := p.observed.ServiceState(name)
	runs := have.Status == ServiceRunning || have.Status == ServicePending || have.Status == ServiceDeleting
	if !runs || strings.EqualFold(name, p.circumstances.Self) {
		return
	}
	key := strings.ToLower(name)
	if old, ok := p.stop[key]; !ok || old.impact.Rank() < c.impact.Rank() {
		p.stop[key] = c
	}
}

// stopReaders stops services that read a changed file, that an interrupted run did not start again, or whose state is
// removed.
func (p *planner) stopReaders() {
	for _, s := range p.target.Services {
		for _, path := range s.Reads {
			if impact := p.changed[bundle.FoldPath(path)]; impact != "" && impact.Rank() >= bundle.ImpactRestart.Rank() {
				p.mustStop(s.Config.Name, cause{protocol.ReasonRestart, impact})
			}
		}
		if slices.Contains(p.circumstances.Restart, s.Config.Name) || !p.circumstances.Stale.isEmpty() {
			p.mustStop(s.Config.Name, cause{protocol.ReasonRestart, bundle.ImpactRestart})
		}
	}
}

// stopDependents stops the services that depend on one that stops, because Windows refuses to stop that one first
// (ERROR_DEPENDENT_SERVICES_RUNNING). Unmanaged services are among them.
func (p *planner) stopDependents() {
	todo := slices.Sorted(maps.Keys(p.stop))
	for len(todo) > 0 {
		key := todo[0]
		todo = todo[1:]
		for _, name := range p.observed.Services[key].Dependents {
			if p.stopDependent(name, p.stop[key].impact) {
				todo = append(todo, strings.ToLower(name))
			}
		}
	}
}

// stopDependent stops a service because one that it depends on stops. The highest impact counts. It reports whether the
// dependents of the service must be visited again.
func (p *planner) stopDependent(name string, impact bundle.Impact) bool {
	key := strings.ToLower(name)
	have, stops := p.stop[key]
	if strings.EqualFold(name, p.circumstances.Self) ||
		stops && (have.reason != protocol.ReasonDependency || have.impact.Rank() >= impact.Rank()) {
		return false
	}
	p.stop[key] = cause{protocol.ReasonDependency, impact}
	p.addUnmanaged(name, impact)
	return true
}

// addUnmanaged adds a dependent that is not in the bundle to the target: it stops and starts again, and is not
// configured.
func (p *planner) addUnmanaged(name string, impact bundle.Impact) {
	if slices.ContainsFunc(p.target.Services, func(s WantedService) bool { return strings.EqualFold(s.Config.Name, name) }) {
		return
	}
	p.target.Services = append(p.target.Services, WantedService{Config: ServiceConfig{Name: name}, Present: true, Run: true, Impact: impact})
	if _, observed := p.observed.Services[strings.ToLower(name)]; !observed {
		p.observed.Services[strings.ToLower(name)] = ServiceState{ServiceConfig: ServiceConfig{Name: name}, Status: ServiceRunning}
	}
}

// stopSteps returns the steps that stop services, dependents before the services that they depend on.
func (p *planner) stopSteps() []Step {
	var list []Step
	for _, s := range slices.Backward(p.byDependency(p.observedDependencies)) {
		if c, stops := p.stop[strings.ToLower(s.Config.Name)]; stops {
			a := protocol.Action{Verb: protocol.VerbStop, Entry: bundle.KindService.ID(s.Config.Name), Reason: c.reason, Impact: c.impact}
			list = append(list, Step{Action: a, Service: s})
		}
	}
	return list
}

// startSteps returns the steps that start services: those that were stopped, and those that should run and do not. If the
// plan needs a reboot, only services that ran before are started.
func (p *planner) startSteps() []Step {
	wait := p.plan.Reboot
	var list []Step
	for _, s := range p.byDependency(func(s WantedService) []string { return s.Config.Dependencies }) {
		c, stopped := p.stop[strings.ToLower(s.Config.Name)]
		status := p.observed.ServiceState(s.Config.Name).Status
		runs := status == ServiceRunning && !stopped
		if !s.Present || !s.Run || runs || wait && !stopped || strings.EqualFold(s.Config.Name, p.circumstances.Self) && status != ServiceAbsent {
			continue
		}
		a := protocol.Action{Verb: protocol.VerbStart, Entry: bundle.KindService.ID(s.Config.Name),
			Reason: protocol.ReasonNotRunning, Impact: bundle.ImpactNone}
		switch {
		case stopped:
			a.Reason, a.Impact = c.reason, c.impact
		case p.skipsEntry(a.Entry):
			continue
		}
		list = append(list, Step{Action: a, Service: s, Fresh: stopped || status == ServiceStopped || status == ServiceAbsent})
	}
	return list
}

// observedDependencies returns the services that a service depends on now, and those by which others are known to
// depend on it.
func (p *planner) observedDependencies(s WantedService) []string {
	names := slices.Clone(p.observed.ServiceState(s.Config.Name).Dependencies)
	for _, other := range p.target.Services {
		if slices.ContainsFunc(p.observed.ServiceState(other.Config.Name).Dependents, func(n string) bool { return strings.EqualFold(n, s.Config.Name) }) {
			names = append(names, other.Config.Name)
		}
	}
	return names
}

// byDependency sorts services so that each comes after those it depends on, otherwise by name. A cycle is broken at its
// first service by name; the service control manager refuses cycles too (ERROR_CIRCULAR_DEPENDENCY).
func (p *planner) byDependency(dependencies func(WantedService) []string) []WantedService {
	all := map[string]WantedService{}
	var names []string
	for _, s := range p.target.Services {
		key := strings.ToLower(s.Config.Name)
		all[key] = s
		names = append(names, key)
	}
	slices.SortFunc(names, cmp.Compare)
	var list []WantedService
	done := map[string]bool{}
	var visit func(string)
	visit = func(key string) {
		s, ok := all[key]
		if !ok || done[key] {
			return
		}
		done[key] = true
		for _, d := range slices.Sorted(slices.Values(dependencies(s))) {
			visit(strings.ToLower(d))
		}
		list = append(list, s)
	}
	for _, key := range names {
		visit(key)
	}
	return list
}
