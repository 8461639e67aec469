package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"wmco/applier/plan"
	"wmco/bundle"
)

// ErrSilent is the error of a probe that fails.
var ErrSilent = errors.New("no healthy answer")

// Probe implements applier.Host. A target that the script does not name answers.
func (h *Host) Probe(ctx context.Context, probe bundle.Probe) error {
	if probe.Kind == bundle.ProbeRunning {
		return fmt.Errorf("probing with %s: %w", probe.Kind, errors.ErrUnsupported)
	}
	return h.look(ctx, func(s *State) error {
		answers, err := h.answers(s, probe.Target)
		if err != nil {
			return fmt.Errorf("probing %s: %w", probe.Target, err)
		}
		if !answers {
			return fmt.Errorf("probing %s: %w", probe.Target, ErrSilent)
		}
		return nil
	})
}

func (h *Host) answers(s *State, target string) (bool, error) {
	if answers, known := s.liveAnswers(target); known && !answers {
		return false, nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Script.Services)) {
		b := s.Script.Services[name]
		if !slices.Contains(b.Answers, target) {
			continue
		}
		if ok, err := h.serviceAnswers(s, name, target); !ok || err != nil {
			return false, err
		}
	}
	for _, p := range s.Script.Probes {
		if p.Target != target {
			continue
		}
		if ok, err := h.holds(p.Unless); len(p.Unless) == 0 || !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// serviceAnswers reports whether a service answers, and counts the probe.
func (h *Host) serviceAnswers(s *State, name, target string) (bool, error) {
	b, svc := s.Script.Services[name], s.Services[Key(name)]
	if svc.Status != plan.ServiceRunning {
		return false, nil
	}
	if asked := svc.Asked[target]; asked < b.HealthyAfter {
		svc.Asked = maps.Clone(svc.Asked)
		if svc.Asked == nil {
			svc.Asked = map[string]int{}
		}
		svc.Asked[target] = asked + 1
		s.Services[Key(name)] = svc
		return false, h.Own.State.Save(s)
	}
	return h.holds(b.Healthy)
}
