package plan

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
)

func (p Plan) Summary() string {
	text := fmt.Sprintf("%d actions, impact %s", len(p.Steps), p.Impact())
	if names := p.Restarts(); len(names) > 0 {
		text += ", restarts " + strings.Join(names, ", ")
	}
	return text
}

// Plan is what brings a host from what was observed to a target, in order, and nothing else.
//
//	folders, settings, files that nobody reads yet              while everything runs
//	stop          services that change, that read what changes, that depend on those: dependents first
//	delete, clear, unset endpoints, write, put, remove
//	start         in the order of dependencies, each service once
//	folders that are empty now
type Plan struct {
	Steps []Step
	// Adopt are entries that are right and that we did not own.
	Adopt []bundle.EntryID
	// Pending are settings that come into force with the next boot.
	Pending []bundle.EntryID
	// Reboot tells that services wait for the boot: they are not started before it.
	Reboot bool
	// Missing are contents that steps need and nobody knows or has.
	Missing []Missing
	// Waiting are endpoints whose network is not there yet.
	Waiting []bundle.EntryID
	// Foreign are files that are left alone, leftovers what cuts left behind.
	Foreign, Leftovers []string
}

// Step is an action with what it needs.
type Step struct {
	Action
	File    WantedFile
	Setting WantedSetting
	Service WantedService
}

// Readers are the services that are stopped and started for something that is written before they stop.
func (p Plan) Readers() []string {
	written := map[string]bool{}
	var names []string
	for _, s := range p.Steps {
		switch {
		case s.Verb == VerbWrite:
			written[bundle.FoldPath(s.File.Path)] = true
		case s.Verb == VerbStop && s.Service.Run && slices.ContainsFunc(s.Service.reads, func(path string) bool { return written[bundle.FoldPath(path)] }):
			names = append(names, s.Service.Config.Name)
		}
	}
	return names
}

// Actions are what the plan shows.
func (p Plan) Actions() []Action {
	list := []Action{}
	for _, s := range p.Steps {
		list = append(list, s.Action)
	}
	return list
}

// Impact is the highest of all steps.
func (p Plan) Impact() bundle.Impact {
	highest := bundle.ImpactNone
	for _, s := range p.Steps {
		if s.Impact.Rank() > highest.Rank() {
			highest = s.Impact
		}
	}
	return highest
}

// Restarts are the services that stop and start again, by name.
func (p Plan) Restarts() []string {
	stopped := map[string]bool{}
	var list []string
	for _, s := range p.Steps {
		switch {
		case s.Verb == VerbStop:
			stopped[s.Service.Config.Name] = true
		case s.Verb == VerbStart && stopped[s.Service.Config.Name]:
			list = append(list, s.Service.Config.Name)
		}
	}
	return slices.Sorted(slices.Values(list))
}

// Stale is what belongs to another cluster: paths with state, and HNS networks. It is removed before anything starts, since
// old certificates, addresses and networks keep a node from joining.
type Stale struct {
	Paths    []string `json:"paths,omitempty"`
	Networks []string `json:"networks,omitempty"`
}

func (s Stale) none() bool { return len(s.Paths)+len(s.Networks) == 0 }
