package applier

import (
	"slices"

	"wmco/bundle"
)

// actions are what the plan shows.
func (p plan) actions() []Action {
	list := []Action{}
	for _, s := range p.steps {
		list = append(list, s.Action)
	}
	return list
}

// impact is the highest of all steps.
func (p plan) impact() bundle.Impact {
	highest := bundle.ImpactNone
	for _, s := range p.steps {
		if s.Impact.Rank() > highest.Rank() {
			highest = s.Impact
		}
	}
	return highest
}

// restarts are the services that stop and start again, by name.
func (p plan) restarts() []string {
	stopped := map[string]bool{}
	var list []string
	for _, s := range p.steps {
		switch {
		case s.Verb == VerbStop:
			stopped[s.service.config.Name] = true
		case s.Verb == VerbStart && stopped[s.service.config.Name]:
			list = append(list, s.service.config.Name)
		}
	}
	return slices.Sorted(slices.Values(list))
}
