package applier

import (
	"cmp"
	"slices"
	"strings"

	"wmco/bundle"
)

// services decides which are configured, deleted, stopped and started.
func (p *planner) services() {
	for _, s := range p.target.services {
		have := p.seen.service(s.config.Name)
		if s.present {
			p.configure(s, have)
		} else {
			p.retire(s, have)
		}
	}
	p.stopReaders()
	p.stopDependents()
}

func (p *planner) configure(s serviceItem, have ServiceState) {
	if s.config.CommandLine == "" {
		return // not ours: it only stops and starts with those it depends on
	}
	a := Action{Verb: VerbPut, Entry: bundle.KindService.ID(s.config.Name), Reason: ReasonAbsent, Impact: s.impact}
	if have.Status == ServiceAbsent {
		a.Impact = bundle.ImpactNone
		p.put = append(p.put, step{Action: a, service: s})
		return
	}
	if p.sameConfig(s, have) {
		p.adopt(a.Entry, serviceName(s.config.Name))
		return
	}
	a.Reason = ReasonDiffers
	anew := have.CommandLine != s.config.CommandLine || !p.sameEnvironment(s, have)
	if !anew || have.Status == ServiceStopped {
		a.Impact = bundle.ImpactNone
	}
	if anew || have.Status == ServiceDeleting {
		p.mustStop(s.config.Name, cause{ReasonRestart, s.impact})
	}
	p.put = append(p.put, step{Action: a, service: s})
}

func (p *planner) retire(s serviceItem, have ServiceState) {
	if have.Status == ServiceAbsent {
		return
	}
	a := Action{Verb: VerbDelete, Entry: bundle.KindService.ID(s.config.Name), Reason: ReasonUnwanted, Impact: s.impact}
	p.mustStop(s.config.Name, cause{ReasonUnwanted, s.impact})
	p.put = append(p.put, step{Action: a, service: s})
}

// sameConfig compares all that the service control manager keeps. Recovery is left aside where the host cannot tell it
// (a reset period of -1).
func (p *planner) sameConfig(s serviceItem, have ServiceState) bool {
	recovery := have.Recovery.ResetSeconds == -1 ||
		have.Recovery.ResetSeconds == s.config.Recovery.ResetSeconds && slices.Equal(have.Recovery.RestartAfterSeconds, s.config.Recovery.RestartAfterSeconds)
	return recovery && have.Status != ServiceDeleting && have.Description == s.config.Description && have.Start == s.config.Start &&
		have.CommandLine == s.config.CommandLine && sameNames(have.Dependencies, s.config.Dependencies) &&
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

// sameEnvironment compares variables, without those that are only there to hide a variable of the machine: adding or
// removing one of those needs no restart.
func (p *planner) sameEnvironment(s serviceItem, have ServiceState) bool {
	seen := map[string]string{}
	for _, line := range have.Environment {
		name, text, _ := strings.Cut(line, "=")
		seen[strings.ToUpper(name)] = text
	}
	for _, v := range s.variables {
		text, ok := seen[strings.ToUpper(v.name)]
		if !ok || !v.value.is(text) {
			return false
		}
		delete(seen, strings.ToUpper(v.name))
	}
	for _, text := range seen {
		if text != "" {
			return false
		}
	}
	return true
}

// sameShadows compares what sameEnvironment leaves aside.
func (p *planner) sameShadows(s serviceItem, have ServiceState) bool {
	want := s.hidden(p.c.shadows)
	return !slices.ContainsFunc(want, func(line string) bool { return !slices.Contains(have.Environment, line) }) &&
		len(have.Environment) == len(s.variables)+len(want)
}

// hidden are the variables that the service gets as empty because the machine had them when it booted.
func (s serviceItem) hidden(shadows []string) []string {
	var lines []string
	for _, name := range shadows {
		if !slices.ContainsFunc(s.variables, func(v variable) bool { return strings.EqualFold(v.name, name) }) {
			lines = append(lines, name+"=")
		}
	}
	return lines
}

// mustStop notes that a service stops, if it runs, for the gravest of the causes.
func (p *planner) mustStop(name string, c cause) {
	have := p.seen.service(name)
	runs := have.Status == ServiceRunning || have.Status == ServicePending || have.Status == ServiceDeleting
	if !runs || strings.EqualFold(name, p.c.self) {
		return
	}
	key := strings.ToLower(name)
	if old, ok := p.stop[key]; !ok || old.impact.Rank() < c.impact.Rank() {
		p.stop[key] = c
	}
}

// stopReaders stops services that read what changes, that a cut run did not start again, or whose state goes.
func (p *planner) stopReaders() {
	for _, s := range p.target.services {
		for _, path := range s.reads {
			if impact := p.changed[bundle.FoldPath(path)]; impact != "" && impact.Rank() >= bundle.ImpactRestart.Rank() {
				p.mustStop(s.config.Name, cause{ReasonRestart, impact})
			}
		}
		if slices.Contains(p.c.restart, s.config.Name) || !p.c.stale.none() {
			p.mustStop(s.config.Name, cause{ReasonRestart, bundle.ImpactRestart})
		}
	}
}

// stopDependents stops what depends on a service that stops: Windows refuses to stop that one before
// (ERROR_DEPENDENT_SERVICES_RUNNING). Services that are not ours are among them.
func (p *planner) stopDependents() {
	for changed := true; changed; {
		before := len(p.stop)
		for key, c := range p.stop {
			for _, name := range p.seen.services[key].Dependents {
				if _, stops := p.stop[strings.ToLower(name)]; !stops && !strings.EqualFold(name, p.c.self) {
					p.addDependent(name, c.impact)
				}
			}
		}
		changed = len(p.stop) != before
	}
}

func (p *planner) addDependent(name string, impact bundle.Impact) {
	p.stop[strings.ToLower(name)] = cause{ReasonDependency, impact}
	if slices.ContainsFunc(p.target.services, func(s serviceItem) bool { return strings.EqualFold(s.config.Name, name) }) {
		return
	}
	// Not ours: it stops and starts again, and stays as it is.
	p.target.services = append(p.target.services, serviceItem{config: ServiceConfig{Name: name}, present: true, run: true, impact: impact})
	if _, seen := p.seen.services[strings.ToLower(name)]; !seen {
		p.seen.services[strings.ToLower(name)] = ServiceState{ServiceConfig: ServiceConfig{Name: name}, Status: ServiceRunning}
	}
}

// stops are the steps that stop services, those that depend on others before those.
func (p *planner) stops() []step {
	var list []step
	for _, s := range slices.Backward(p.byDependency(p.dependenciesSeen)) {
		if c, stops := p.stop[strings.ToLower(s.config.Name)]; stops {
			a := Action{Verb: VerbStop, Entry: bundle.KindService.ID(s.config.Name), Reason: c.reason, Impact: c.impact}
			list = append(list, step{Action: a, service: s})
		}
	}
	return list
}

// starts are the steps that start services: those that were stopped and those that should run and do not. Before a boot
// that is needed anyway, only what ran before.
func (p *planner) starts() []step {
	wait := p.plan.reboot
	var list []step
	for _, s := range p.byDependency(func(s serviceItem) []string { return s.config.Dependencies }) {
		c, stopped := p.stop[strings.ToLower(s.config.Name)]
		runs := p.seen.service(s.config.Name).Status == ServiceRunning && !stopped
		if !s.present || !s.run || runs || wait && !stopped || strings.EqualFold(s.config.Name, p.c.self) && p.seen.service(s.config.Name).Status != ServiceAbsent {
			continue
		}
		a := Action{Verb: VerbStart, Entry: bundle.KindService.ID(s.config.Name), Reason: ReasonNotRunning, Impact: bundle.ImpactNone}
		if stopped {
			a.Reason, a.Impact = c.reason, c.impact
		}
		list = append(list, step{Action: a, service: s})
	}
	return list
}

// dependenciesSeen are those that a service has now, and the ones by which others are known to depend on it.
func (p *planner) dependenciesSeen(s serviceItem) []string {
	names := slices.Clone(p.seen.service(s.config.Name).Dependencies)
	for _, other := range p.target.services {
		if slices.ContainsFunc(p.seen.service(other.config.Name).Dependents, func(n string) bool { return strings.EqualFold(n, s.config.Name) }) {
			names = append(names, other.config.Name)
		}
	}
	return names
}

// byDependency sorts services so that each comes after those it depends on; otherwise by name. A cycle, which the service
// control manager refuses as well (ERROR_CIRCULAR_DEPENDENCY), is broken at its first service by name.
func (p *planner) byDependency(dependencies func(serviceItem) []string) []serviceItem {
	all := map[string]serviceItem{}
	var names []string
	for _, s := range p.target.services {
		key := strings.ToLower(s.config.Name)
		all[key] = s
		names = append(names, key)
	}
	slices.SortFunc(names, cmp.Compare)
	var list []serviceItem
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
