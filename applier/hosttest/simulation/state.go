package simulation

import (
	"maps"
	"strings"
	"time"

	"wmco/applier"
	"wmco/bundle"
)

// State is what a machine is, beside its files. Lists in it are replaced and never changed in place, so that a Clone
// stays as it is.
type State struct {
	// Boot counts the starts of the machine: what ran before the last one does not run.
	Boot int
	// BootTime is when it last started.
	BootTime time.Time
	// RebootAsked is the reason for which a restart was asked, empty if none is due.
	RebootAsked string
	// HostName is the name in force, NextHostName the one after the next boot, empty if it stays.
	HostName     string
	NextHostName string
	// LastProcess is the process id given last.
	LastProcess int
	// Facts are those that nothing else here tells.
	Facts bundle.Facts
	// Services by Key of their name.
	Services map[string]Service
	// Processes are the programs that run and belong to no service.
	Processes []Process
	// Settings that are there or will be, by SettingKey. Neither host names nor networks are among them.
	Settings map[string]applier.Setting
	Script   Script
}

// Service is a service and what it does.
type Service struct {
	applier.ServiceConfig
	// Status is stopped, running or pending, in force only if Boot is the machine's.
	Status applier.ServiceStatus `json:"status"`
	Boot   int                   `json:"boot,omitempty"`
	// Deleted: it is marked for deletion.
	Deleted bool `json:"deleted,omitempty"`
	// Processes are its own and those that it started, its own first.
	Processes []Process `json:"processes,omitempty"`
	// Argv and Delivered are the arguments and the environment that it was last started with.
	Argv      []string `json:"argv,omitempty"`
	Delivered []string `json:"delivered,omitempty"`
	// Killed: it did not stop when it was last asked to.
	Killed bool `json:"killed,omitempty"`
	// Asked counts the probes since it started, by target.
	Asked map[string]int `json:"asked,omitempty"`
}

// Process is a program that runs.
type Process struct {
	ID   int `json:"id"`
	Boot int `json:"boot"`
	// File is the ID of the program's file, by which it is known under any name.
	File string `json:"file"`
}

// NewState returns a machine that says facts of itself and was started at boot.
func NewState(facts bundle.Facts, boot time.Time) *State {
	s := &State{
		Boot:     1,
		BootTime: boot,
		HostName: facts.HostName,
		Facts:    facts,
		Services: map[string]Service{},
		Settings: map[string]applier.Setting{},
	}
	for _, name := range facts.Features {
		s.Put(applier.Setting{Kind: bundle.KindFeature, Name: name, Present: true})
	}
	for _, e := range facts.Endpoints {
		s.Put(applier.Setting{Kind: bundle.KindEndpoint, Name: e.Name, Value: e.Network + "/1", Present: true})
	}
	s.Facts.Schema, s.Facts.HostName, s.Facts.Features, s.Facts.Endpoints = bundle.FactsSchema, "", nil, nil
	return s
}

// Clone returns a state that changes on its own.
func (s *State) Clone() *State {
	c := *s
	c.Services, c.Settings = maps.Clone(s.Services), maps.Clone(s.Settings)
	c.Script.Services = maps.Clone(s.Script.Services)
	return &c
}

// Key is the form under which Windows compares the names of services and settings.
func Key(name string) string { return strings.ToLower(name) }

// SettingKey is the key of a setting.
func SettingKey(kind bundle.EntryKind, name string) string { return Key(string(kind.ID(name))) }

// Put keeps a setting.
func (s *State) Put(setting applier.Setting) {
	s.Settings[SettingKey(setting.Kind, setting.Name)] = setting
}

// settle brings a state that was loaded up to now: what ran before the last boot has stopped, what crashes has crashed,
// and what was deleted is gone once nothing keeps it. looks makes each process that was restarted another one.
func (s *State) settle(looks int) {
	for key, svc := range s.Services {
		after := s.Script.behaviour(svc.Name).After
		switch {
		case svc.Boot != s.Boot || svc.Status == applier.ServiceRunning && after == AfterCrashes:
			svc.Status, svc.Processes = applier.ServiceStopped, nil
		case svc.Status == applier.ServiceRunning && after == AfterRestarts && len(svc.Processes) > 0:
			own := svc.Processes[0]
			own.ID += looks
			svc.Processes = append([]Process{own}, svc.Processes[1:]...)
		}
		s.Services[key] = svc
		s.sweep(svc)
	}
	var live []Process
	for _, p := range s.Processes {
		if p.Boot == s.Boot {
			live = append(live, p)
		}
	}
	s.Processes = live
}

// sweep drops a service that was deleted and that nothing keeps.
func (s *State) sweep(svc Service) {
	if svc.Deleted && svc.Status == applier.ServiceStopped && !s.Script.behaviour(svc.Name).Held {
		delete(s.Services, Key(svc.Name))
	}
}

// runs tells whether the file of that ID is a program that runs.
func (s *State) runs(file string) bool {
	if has(s.Processes, file) {
		return true
	}
	for _, svc := range s.Services {
		if has(svc.Processes, file) {
			return true
		}
	}
	return false
}

func has(processes []Process, file string) bool {
	for _, p := range processes {
		if p.File == file {
			return true
		}
	}
	return false
}
