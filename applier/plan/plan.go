package plan

import (
	"fmt"
	"slices"
	"strings"

	"wmco/applier/protocol"
	"wmco/bundle"
)

// Plan is what brings a host from an observation to a target: its steps, in order.
//
//	folders, settings, files without readers                    while everything runs
//	stop          services that change, read a changed file, or depend on such a service: dependents first
//	delete, clear, unset endpoints, write, put, remove
//	start         in the order of dependencies, each service once
//	folders that are empty now
type Plan struct {
	Steps []Step
	// Adopt are entries that are right and not managed yet.
	Adopt []bundle.EntryID
	// Pending are settings that take effect with the next boot.
	Pending []bundle.EntryID
	// Reboot reports whether services wait for the boot: they are not started before it.
	Reboot bool
	// Skipped are entries that differ and stay as they are.
	Skipped []bundle.EntryID
	// Unknown are settings that could not be read: they stay as they are.
	Unknown []bundle.EntryID
	// Missing are contents that steps need and that are not available on the host.
	Missing []protocol.Missing
	// Waiting are endpoints whose network does not exist yet.
	Waiting []bundle.EntryID
	// Foreign are unmanaged files, which stay. Leftovers are files that interruptions left behind.
	Foreign, Leftovers []string
}

// Step is an action with everything needed to do it.
type Step struct {
	protocol.Action
	File    WantedFile
	Setting WantedSetting
	Service WantedService
	// Fresh is true for a start of a service that does not run then: it was observed so, or an earlier step stops it. If
	// it runs nevertheless, something else started it, perhaps with the old configuration.
	Fresh bool
}

// ReaderServices returns the services that restart because the plan writes a file that they read, while they still run.
func (p Plan) ReaderServices() []string {
	written := map[string]bool{}
	var names []string
	for _, s := range p.Steps {
		switch {
		case s.Verb == protocol.VerbWrite:
			written[bundle.FoldPath(s.File.Path)] = true
		case s.Verb == protocol.VerbStop && s.Service.Run &&
			slices.ContainsFunc(s.Service.Reads, func(path string) bool { return written[bundle.FoldPath(path)] }):
			names = append(names, s.Service.Config.Name)
		}
	}
	return names
}

// ShownActions returns the actions of the steps, for output.
func (p Plan) ShownActions() []protocol.Action {
	list := []protocol.Action{}
	for _, s := range p.Steps {
		list = append(list, s.Action)
	}
	return list
}

// HighestImpact returns the highest impact of all steps.
func (p Plan) HighestImpact() bundle.Impact {
	highest := bundle.ImpactNone
	for _, s := range p.Steps {
		if s.Impact.Rank() > highest.Rank() {
			highest = s.Impact
		}
	}
	return highest
}

// RestartedServices returns the services that restart, by name.
func (p Plan) RestartedServices() []string {
	stopped := map[string]bool{}
	var list []string
	for _, s := range p.Steps {
		switch {
		case s.Verb == protocol.VerbStop:
			stopped[s.Service.Config.Name] = true
		case s.Verb == protocol.VerbStart && stopped[s.Service.Config.Name]:
			list = append(list, s.Service.Config.Name)
		}
	}
	return slices.Sorted(slices.Values(list))
}

// SummaryLine returns the plan in one line.
func (p Plan) SummaryLine() string {
	text := fmt.Sprintf("%s, impact %s", bundle.Count(len(p.Steps), "action"), p.HighestImpact())
	if names := p.RestartedServices(); len(names) > 0 {
		text += ", restarts " + strings.Join(names, ", ")
	}
	return text
}

// Stale is what belongs to another cluster: paths with state, and HNS networks. It is removed before anything starts,
// because old certificates, addresses and networks keep a node from joining.
type Stale struct {
	Paths    []string `json:"paths,omitempty"`
	Networks []string `json:"networks,omitempty"`
}

func (s Stale) isEmpty() bool { return len(s.Paths)+len(s.Networks) == 0 }
