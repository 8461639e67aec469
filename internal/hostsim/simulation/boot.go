package simulation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
)

func readHostName(s *State, x plan.Setting) plan.Setting {
	x.Present, x.Value = true, s.HostName
	if s.NextHostName != "" {
		x.Value, x.Pending = s.NextHostName, true
	}
	return x
}

func setHostName(s *State, x plan.Setting) error {
	if x.Value == "" {
		return ErrInvalidParameter
	}
	s.NextHostName = x.Value
	if x.Value == s.HostName {
		s.NextHostName = ""
	}
	return nil
}

// unsetHostName keeps the name: Windows always has one.
func unsetHostName(*State, plan.Setting) error { return nil }

// Facts implements applier.Host.
func (h *Host) Facts(ctx context.Context) (bundle.Facts, error) {
	var f bundle.Facts
	err := h.look(ctx, func(s *State) error {
		f = s.Facts
		f.HostName, f.BootTime = s.HostName, s.BootTime.UTC().Format(time.RFC3339Nano)
		f.Features, f.Endpoints = s.featuresInEffect(), s.endpoints()
		if err := s.Script.answers(PartHNS); err != nil {
			f.Networks, f.Endpoints = nil, nil
			f = f.AddUnknown(bundle.UnknownFact{Part: bundle.PartNetworks, Error: err.Error()})
		}
		if err := s.Script.answers(PartDISM); err != nil {
			f.Features = nil
			f = f.AddUnknown(bundle.UnknownFact{Part: bundle.PartFeatures, Error: err.Error()})
		}
		return nil
	})
	return f, err
}

func (s *State) featuresInEffect() []string {
	var names []string
	for _, x := range s.Settings {
		if x.Kind == bundle.KindFeature && x.Present != x.Pending {
			names = append(names, x.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Reboot implements applier.Host. The host keeps running until Restart.
func (h *Host) Reboot(ctx context.Context, reason string) error {
	return h.change(ctx, Operation{VerbReboot, reason}, func(s *State) error {
		s.RebootAsked = reason
		return h.Storage.State.Save(s)
	})
}

// Restart boots the host, whether or not that was requested: all processes end, pending settings take effect, and the
// services with automatic start are started. One that fails to start is no error.
func (h *Host) Restart(ctx context.Context) error {
	return h.itself(ctx, func(s *State) error {
		s.Boot++
		s.BootTime, s.RebootAsked = bootTime(s.BootTime, h.Now()), ""
		if s.NextHostName != "" {
			s.HostName, s.NextHostName = s.NextHostName, ""
		}
		s.Facts.PendingBoots = nil // it is what Windows waited for
		s.applyPending()
		s.settle(h.looks)
		if err := h.removeAtBoot(s); err != nil {
			return err
		}
		if err := h.Own.State.Save(s); err != nil {
			return err
		}
		return h.startAll(s)
	})
}

// removeAtBoot removes the files that were to be removed now.
func (h *Host) removeAtBoot(s *State) error {
	for _, path := range s.RemovedAtBoot {
		if err := h.RemoveFile(path); err != nil {
			return err
		}
	}
	s.RemovedAtBoot = nil
	return nil
}

// bootTime is now, or later if the clock was set back: no two boots have the same time.
func bootTime(last, now time.Time) time.Time {
	if now.After(last) {
		return now
	}
	return last.Add(time.Second)
}

func (s *State) applyPending() {
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

func (h *Host) startAll(s *State) error {
	for _, key := range slices.Sorted(maps.Keys(s.Services)) {
		if s.Services[key].Start != bundle.StartAuto {
			continue
		}
		err := h.start(s, key, &starting{store: h.Own.State})
		var code SystemError
		if err != nil && !errors.As(err, &code) {
			return err
		}
	}
	return nil
}
