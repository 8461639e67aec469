package simulation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"wmco/applier"
	"wmco/bundle"
)

func readHostName(s *State, x applier.Setting) applier.Setting {
	x.Present, x.Value = true, s.HostName
	if s.NextHostName != "" {
		x.Value, x.Pending = s.NextHostName, true
	}
	return x
}

func setHostName(s *State, x applier.Setting) error {
	if x.Value == "" {
		return ErrInvalidParameter
	}
	s.NextHostName = x.Value
	if x.Value == s.HostName {
		s.NextHostName = ""
	}
	return nil
}

// unsetHostName keeps the name: a machine always has one.
func unsetHostName(*State, applier.Setting) error { return nil }

// Facts implements applier.Machine.
func (m *Machine) Facts(ctx context.Context) (bundle.Facts, error) {
	var f bundle.Facts
	err := m.look(ctx, func(s *State) error {
		f = s.Facts
		f.HostName, f.BootTime = s.HostName, s.BootTime.UTC().Format(time.RFC3339Nano)
		f.Features, f.Endpoints = s.featuresInForce(), s.endpoints()
		return nil
	})
	return f, err
}

func (s *State) featuresInForce() []string {
	var names []string
	for _, x := range s.Settings {
		if x.Kind == bundle.KindFeature && x.Present != x.Pending {
			names = append(names, x.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Reboot implements applier.Machine. The machine goes on until Restart.
func (m *Machine) Reboot(ctx context.Context, reason string) error {
	return m.change(ctx, Operation{VerbReboot, reason}, func(s *State) error {
		s.RebootAsked = reason
		return m.Store.Save(s)
	})
}

// Restart boots the machine, asked or not: nothing runs any more, what was pending comes into force, and the services that
// start by themselves do, as far as they can.
func (m *Machine) Restart(ctx context.Context) error {
	return m.itself(ctx, func(s *State, own Store) error {
		s.Boot++
		s.BootTime, s.RebootAsked = bootTime(s.BootTime, m.Now()), ""
		if s.NextHostName != "" {
			s.HostName, s.NextHostName = s.NextHostName, ""
		}
		s.bringIntoForce()
		s.settle(m.looks)
		if err := own.Save(s); err != nil {
			return err
		}
		return m.startAll(s, own)
	})
}

// bootTime is now, or later where a clock was put back: no two boots have the same time.
func bootTime(last, now time.Time) time.Time {
	if now.After(last) {
		return now
	}
	return last.Add(time.Second)
}

func (s *State) bringIntoForce() {
	for key, x := range s.Settings {
		switch {
		case x.Pending && x.Present:
			x.Pending = false
			s.Settings[key] = x
		case x.Pending:
			delete(s.Settings, key)
		}
	}
}

func (m *Machine) startAll(s *State, own Store) error {
	for _, key := range slices.Sorted(maps.Keys(s.Services)) {
		if s.Services[key].Start != bundle.StartAuto {
			continue
		}
		err := m.start(s, key, &starting{store: own})
		var code SystemError
		if err != nil && !errors.As(err, &code) {
			return err
		}
	}
	return nil
}
