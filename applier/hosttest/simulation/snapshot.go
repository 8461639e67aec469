package simulation

import (
	"maps"

	"wmco/applier"
	"wmco/bundle"
)

// Snapshot is what a whole machine is, to be compared. It leaves out what differs between machines that are the same:
// times, process ids and IDs of files.
type Snapshot struct {
	Files    map[string]FileSnapshot
	Services map[string]ServiceSnapshot
	// Settings by their ID. They hold secrets in plain.
	Settings                            map[string]applier.Setting
	Facts                               bundle.Facts
	HostName, NextHostName, RebootAsked string
	Boot                                int
}

// FileSnapshot is what stands at a path.
type FileSnapshot struct {
	Kind   applier.FileKind
	Access bundle.Access
	Digest bundle.Digest
}

// ServiceSnapshot is what a service is and does.
type ServiceSnapshot struct {
	applier.ServiceConfig
	Status applier.ServiceStatus
	// Delivered is the environment that it runs with, Programs how many run for it.
	Delivered []string
	Programs  int
}

// Snapshot returns the machine with the files that the host tells.
func (s *State) Snapshot(files map[string]FileSnapshot) Snapshot {
	snap := Snapshot{
		Files:        files,
		Services:     map[string]ServiceSnapshot{},
		Settings:     maps.Clone(s.Settings),
		Facts:        s.Facts,
		HostName:     s.HostName,
		NextHostName: s.NextHostName,
		RebootAsked:  s.RebootAsked,
		Boot:         s.Boot,
	}
	for key, svc := range s.Services {
		x := ServiceSnapshot{ServiceConfig: svc.ServiceConfig, Status: s.serviceState(svc.Name).Status, Programs: len(svc.Processes)}
		if svc.Status == applier.ServiceRunning {
			x.Delivered = svc.Delivered
		}
		snap.Services[key] = x
	}
	return snap
}

// Settled returns the state as it is by now, without what was deleted or crashed since it was saved.
func (s *State) Settled() *State {
	c := s.Clone()
	c.settle(0)
	return c
}
