package winhost

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"wmco/applier"
)

// featureState is a DismPackageFeatureState
// (learn.microsoft.com/windows-hardware/manufacture/desktop/dism/dismpackagefeaturestate-enumeration).
type featureState uint32

const (
	featureUninstallPending featureState = 1 // DismStateUninstallPending
	featureInstalled        featureState = 4 // DismStateInstalled
	featureInstallPending   featureState = 5 // DismStateInstallPending
)

// featureImage is the running Windows as DISM sees it.
type featureImage interface {
	// features are the states of all optional features that this Windows knows.
	features() (map[string]featureState, error)
	// enable turns a feature on, with those that it needs. What needs a restart is pending until then.
	enable(name string) error
	disable(name string) error
}

// remembered is an image that is asked once for a while: an observation wants the states as facts and as settings.
type remembered struct {
	featureImage
	now func() time.Time

	mu     sync.Mutex
	states map[string]featureState
	at     time.Time
}

// rememberFor is long enough for one observation, and short enough for what administrators change between two.
const rememberFor = 10 * time.Second

func (r *remembered) features() (map[string]featureState, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if age := r.now().Sub(r.at); r.states != nil && age >= 0 && age < rememberFor {
		return r.states, nil
	}
	states, err := r.featureImage.features()
	if err == nil {
		r.states, r.at = states, r.now()
	}
	return states, err
}

func (r *remembered) enable(name string) error {
	r.forget()
	return r.featureImage.enable(name)
}

func (r *remembered) disable(name string) error {
	r.forget()
	return r.featureImage.disable(name)
}

func (r *remembered) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = nil
}

// features keeps bundle.KindFeature. Each question opens a session with DISM, which takes a second or more, so one answers
// for all names.
type features struct{ image featureImage }

func (f features) read(_ context.Context, names []string) ([]applier.Setting, error) {
	states, err := f.image.features()
	if err != nil {
		return nil, err
	}
	all := make([]applier.Setting, len(names))
	for i, name := range names {
		all[i] = featureSetting(stateOf(states, name))
	}
	return all, nil
}

func featureSetting(state featureState) applier.Setting {
	return applier.Setting{
		Present: state == featureInstalled || state == featureInstallPending,
		Pending: state == featureInstallPending || state == featureUninstallPending,
	}
}

// stateOf compares names as DISM does, without case.
func stateOf(states map[string]featureState, name string) featureState {
	for known, state := range states {
		if strings.EqualFold(known, name) {
			return state
		}
	}
	return 0
}

func (f features) write(_ context.Context, s applier.Setting) error {
	states, err := f.image.features()
	if err != nil {
		return err
	}
	if featureSetting(stateOf(states, s.Name)).Present == s.Present {
		return nil
	}
	if s.Present {
		return f.image.enable(s.Name)
	}
	return f.image.disable(s.Name)
}

// enabledFeatures are the names of those that are on, sorted; nothing where the machine has no such thing.
func enabledFeatures(image featureImage) ([]string, error) {
	states, err := image.features()
	if err != nil {
		return nil, fmt.Errorf("reading features: %w", err)
	}
	var on []string
	for name, state := range states {
		if state == featureInstalled {
			on = append(on, name)
		}
	}
	slices.Sort(on)
	return on, nil
}
