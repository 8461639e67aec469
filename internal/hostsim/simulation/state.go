package simulation

import (
	"maps"
	"strings"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
)

// State is everything of a host except its files. Lists in it are replaced and never changed in place, because a Clone
// shares them.
type State struct {
	// Boot is the number of boots. Processes of earlier boots do not run.
	Boot int
	// BootTime is the time of the last boot.
	BootTime time.Time
	// RebootAsked is the reason for which a restart was requested, empty if none is pending.
	RebootAsked string
	// RemovedAtBoot are files that the next boot removes.
	RemovedAtBoot []string
	// HostName is the name in effect, NextHostName the one after the next boot, empty if it stays.
	HostName     string
	NextHostName string
	// LastProcess is the last process ID that was given.
	LastProcess int
	// Facts are those that do not follow from the other fields.
	Facts bundle.Facts
	// Services by Key of their name.
	Services map[string]Service
	// Processes are the programs that run and belong to no service.
	Processes []Process
	// Settings are those that are present or pending, by SettingKey, without host names and networks.
	Settings map[string]plan.Setting
	Script   Script
	// Live are the programs that really run, by Key of their service's name.
	Live map[string]Live
}

// Service is the configuration and the status of a service.
type Service struct {
	plan.ServiceConfig
	// Status is stopped, running or pending. It holds only if Boot is the Boot of the State.
	Status plan.ServiceStatus `json:"status"`
	Boot   int                `json:"boot,omitempty"`
	// Deleted is true for a service that is marked for deletion.
	Deleted bool `json:"deleted,omitempty"`
	// Processes are its own, which is the first, and those that it started.
	Processes []Process `json:"processes,omitempty"`
	// Argv and Delivered are the arguments and the environment that it was last started with.
	Argv      []string `json:"argv,omitempty"`
	Delivered []string `json:"delivered,omitempty"`
	// Starts is the number of times that it was started.
	Starts int `json:"starts,omitempty"`
	// Killed is true for a service that did not stop when it was last asked to.
	Killed bool `json:"killed,omitempty"`
	// Recovers is true for a service that crashed and that the service control manager will start again.
	Recovers bool `json:"recovers,omitempty"`
	// Asked is the number of probes since it started, by target.
	Asked map[string]int `json:"asked,omitempty"`
}

// Process is a running program.
type Process struct {
	ID   int `json:"id"`
	Boot int `json:"boot"`
	// File is the ID of the program's file, which stays the same when the file is renamed.
	File string `json:"file"`
}

// NewState returns the state of a host that reports facts and was booted at the given time.
func NewState(facts bundle.Facts, boot time.Time) *State {
	s := &State{
		Boot:     1,
		BootTime: boot,
		HostName: facts.HostName,
		Facts:    facts,
		Services: map[string]Service{},
		Settings: map[string]plan.Setting{},
	}
	for _, name := range facts.Features {
		s.Put(plan.Setting{Kind: bundle.KindFeature, Name: name, Present: true})
	}
	for _, e := range facts.Endpoints {
		s.Put(plan.Setting{Kind: bundle.KindEndpoint, Name: e.Name, Value: e.Network + "/1", Present: true})
	}
	s.Facts.Schema, s.Facts.HostName, s.Facts.Features, s.Facts.Endpoints = bundle.FactsSchema, "", nil, nil
	return s
}

// Clone returns a copy that can be changed independently.
func (s *State) Clone() *State {
	c := *s
	c.Services, c.Settings = maps.Clone(s.Services), maps.Clone(s.Settings)
	c.Script.Services, c.Live = maps.Clone(s.Script.Services), maps.Clone(s.Live)
	return &c
}

// Key is the form under which Windows compares the names of services and settings.
func Key(name string) string { return strings.ToLower(name) }

// SettingKey is the key of a setting.
func SettingKey(kind bundle.EntryKind, name string) string { return Key(string(kind.ID(name))) }

// Put adds or replaces a setting.
func (s *State) Put(setting plan.Setting) {
	s.Settings[SettingKey(setting.Kind, setting.Name)] = setting
}

// settle updates a state that was loaded to the present: what ran before the last boot has stopped, what crashes has
// crashed or ended, and what was deleted is gone unless a handle keeps it. looks gives a service that restarts another
// process ID each time.
func (s *State) settle(looks int) {
	for key, svc := range s.Services {
		after := s.Script.behaviour(svc.Name).After
		switch {
		case svc.Boot != s.Boot || svc.Status == plan.ServiceRunning && after == AfterCrashes || s.ended(key, svc):
			svc.Status, svc.Processes = plan.ServiceStopped, nil
			svc.Recovers = svc.Recovers && svc.Boot == s.Boot
		case svc.Status == plan.ServiceRunning && after == AfterRestarts && len(svc.Processes) > 0:
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

// sweep removes a service that was deleted unless a handle keeps it.
func (s *State) sweep(svc Service) {
	if svc.Deleted && svc.Status == plan.ServiceStopped && !s.Script.behaviour(svc.Name).Held {
		delete(s.Services, Key(svc.Name))
	}
}

// runs reports whether the file with that ID is a running program.
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
