package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

// Settings implements applier.Host.
func (h *Host) Settings(ctx context.Context, names []plan.Setting) ([]plan.Setting, error) {
	settings := make([]plan.Setting, 0, len(names))
	err := h.look(ctx, func(s *State) error {
		for _, n := range names {
			k, ok := kinds[n.Kind]
			if !ok {
				return fmt.Errorf("reading %s: %w", n.ID(), applier.ErrNoSetting)
			}
			if err := s.Script.answers(parts[n.Kind]); err != nil {
				settings = append(settings, plan.Setting{
					Kind: n.Kind, Name: n.Name, Unknown: fmt.Sprintf("reading settings of kind %s: %v", n.Kind, err),
				})
				continue
			}
			settings = append(settings, k.read(s, plan.Setting{Kind: n.Kind, Name: n.Name}))
		}
		return nil
	})
	return settings, err
}

// Set implements applier.Host. Its errors do not contain the value, which may be a secret.
func (h *Host) Set(ctx context.Context, setting plan.Setting) error {
	op := Operation{VerbUnset, string(setting.ID())}
	if setting.Present {
		op.Verb = VerbSet
	}
	return h.change(ctx, op, func(s *State) error {
		do := kinds[setting.Kind].unset
		if setting.Present {
			do = kinds[setting.Kind].set
		}
		if do == nil {
			return fmt.Errorf("changing %s: %w", setting.ID(), applier.ErrNoSetting)
		}
		setting.Pending = false
		err := s.Script.answers(parts[setting.Kind])
		if err == nil {
			err = do(s, setting)
		}
		if err != nil {
			return fmt.Errorf("changing %s: %w", setting.ID(), err)
		}
		return h.Storage.State.Save(s)
	})
}

// settingKind is how one kind of setting is read and changed. Where set or unset is nil, that is not possible.
type settingKind struct {
	// read fills in a setting of which the kind and name are given.
	read  func(*State, plan.Setting) plan.Setting
	set   func(*State, plan.Setting) error
	unset func(*State, plan.Setting) error
}

var kinds = map[bundle.EntryKind]settingKind{
	bundle.KindVariable:      {readKept, setVariable, unsetKept},
	bundle.KindTrustedCA:     {readKept, setTrustedCA, unsetKept},
	bundle.KindAuthorizedKey: {readKept, setAuthorizedKey, unsetKept},
	bundle.KindRoute:         {readRoute, setRoute, unsetKept},
	bundle.KindFeature:       {readKept, switchFeature, switchFeature},
	bundle.KindFirewall:      {readKept, setFirewall, unsetKept},
	bundle.KindExclusion:     {readExclusion, setExclusion, unsetKept},
	bundle.KindPolicy:        {readKept, setPolicy, unsetKept},
	bundle.KindEndpoint:      {readKept, setEndpoint, unsetKept},
	bundle.KindNetwork:       {readNetwork, nil, unsetNetwork},
	bundle.KindHostName:      {readHostName, setHostName, unsetHostName},
}

func readKept(s *State, x plan.Setting) plan.Setting {
	kept, ok := s.Settings[SettingKey(x.Kind, x.Name)]
	if !ok {
		return x
	}
	x.Value, x.Present, x.Pending = kept.Value, kept.Present, kept.Pending
	return x
}

func unsetKept(s *State, x plan.Setting) error {
	delete(s.Settings, SettingKey(x.Kind, x.Name))
	return nil
}

func setVariable(s *State, x plan.Setting) error {
	if x.Name == "" || strings.ContainsAny(x.Name, "=\x00") || strings.Contains(x.Value, "\x00") {
		return ErrInvalidParameter
	}
	s.Put(x)
	return nil
}

func setTrustedCA(s *State, x plan.Setting) error {
	if string(bundle.Of([]byte(x.Value))) != x.Name {
		return fmt.Errorf("%w: the certificate has another digest", ErrInvalidParameter)
	}
	s.Put(x)
	return nil
}

func setAuthorizedKey(s *State, x plan.Setting) error {
	if fingerprint, err := bundle.Fingerprint(x.Value); err != nil || fingerprint != x.Name {
		return fmt.Errorf("%w: the key has another fingerprint", ErrInvalidParameter)
	}
	s.Put(x)
	return nil
}

// switchFeature turns a feature on or off with the next boot. A return to the present state takes effect at once.
func switchFeature(s *State, x plan.Setting) error {
	now := readKept(s, plan.Setting{Kind: x.Kind, Name: x.Name})
	inEffect := now.Present != now.Pending
	switch {
	case x.Present != inEffect:
		x.Pending = true
		s.Put(x)
	case inEffect:
		s.Put(x)
	default:
		delete(s.Settings, SettingKey(x.Kind, x.Name))
	}
	return nil
}

func setFirewall(s *State, x plan.Setting) error {
	protocol, port, ok := strings.Cut(x.Value, "/")
	if !ok || protocol == "" || strings.Trim(port, "0123456789") != "" {
		return fmt.Errorf("%w: %s is not protocol/port", ErrInvalidParameter, x.Value)
	}
	s.Put(x)
	return nil
}

func setPolicy(s *State, x plan.Setting) error {
	if _, err := bundle.PolicyNumber(x.Value); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidParameter, err)
	}
	s.Put(x)
	return nil
}

func readExclusion(s *State, x plan.Setting) plan.Setting {
	x = readKept(s, x)
	x.Unavailable = !s.Facts.DefenderRunning
	return x
}

func setExclusion(s *State, x plan.Setting) error {
	if !s.Facts.DefenderRunning {
		return applier.ErrNoSetting
	}
	s.Put(x)
	return nil
}

// Authorize adds a key of an operator, given as "ALGORITHM BASE64", to administrators_authorized_keys.
func (s *State) Authorize(line string) error {
	fingerprint, err := bundle.Fingerprint(line)
	if err == nil {
		s.Put(plan.Setting{Kind: bundle.KindAuthorizedKey, Name: fingerprint, Value: line, Present: true})
	}
	return err
}

// AuthorizedKeys returns the keys that administrators_authorized_keys has, sorted.
func (s *State) AuthorizedKeys() []string {
	var lines []string
	for _, x := range s.Settings {
		if x.Kind == bundle.KindAuthorizedKey && x.Present {
			lines = append(lines, x.Value)
		}
	}
	return slices.Sorted(slices.Values(lines))
}
