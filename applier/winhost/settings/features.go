package settings

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"wmco/applier/plan"
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
	// listFeatures returns the states of all optional features that this Windows knows.
	listFeatures() (map[string]featureState, error)
	// enableFeature turns a feature on, and the features that it needs. One that needs a restart is pending until then.
	enableFeature(name string) error
	disableFeature(name string) error
}

// remembered keeps the states of an image for a while: an observation reads them twice, as facts and as settings.
type remembered struct {
	featureImage
	now func() time.Time

	mu     sync.Mutex
	states map[string]featureState
	at     time.Time
}

// rememberFor is longer than one observation, and short enough to see what administrators change before the next one.
const rememberFor = 10 * time.Second

func (r *remembered) listFeatures() (map[string]featureState, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if age := r.now().Sub(r.at); r.states != nil && age >= 0 && age < rememberFor {
		return r.states, nil
	}
	states, err := r.featureImage.listFeatures()
	if err == nil {
		r.states, r.at = states, r.now()
	}
	return states, err
}

func (r *remembered) enableFeature(name string) error {
	r.forgetFeatures()
	return r.featureImage.enableFeature(name)
}

func (r *remembered) disableFeature(name string) error {
	r.forgetFeatures()
	return r.featureImage.disableFeature(name)
}

func (r *remembered) forgetFeatures() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = nil
}

// featureKeeper keeps bundle.KindFeature. It reads all names at once: a session of DISM takes a second or more to open.
type featureKeeper struct{ image featureImage }

func (f featureKeeper) Read(_ context.Context, names []string) ([]plan.Setting, error) {
	states, err := f.image.listFeatures()
	if err != nil {
		return nil, err
	}
	all := make([]plan.Setting, len(names))
	for i, name := range names {
		all[i] = featureSetting(featureStateOf(states, name))
	}
	return all, nil
}

func featureSetting(state featureState) plan.Setting {
	return plan.Setting{
		Present: state == featureInstalled || state == featureInstallPending,
		Pending: state == featureInstallPending || state == featureUninstallPending,
	}
}

// featureStateOf ignores the case of names, as DISM does.
func featureStateOf(states map[string]featureState, name string) featureState {
	for known, state := range states {
		if strings.EqualFold(known, name) {
			return state
		}
	}
	return 0
}

func (f featureKeeper) Write(_ context.Context, s plan.Setting) error {
	states, err := f.image.listFeatures()
	if err != nil {
		return err
	}
	if featureSetting(featureStateOf(states, s.Name)).Present == s.Present {
		return nil
	}
	if s.Present {
		return f.image.enableFeature(s.Name)
	}
	return f.image.disableFeature(s.Name)
}

// enabledFeatures returns the names of the features that are on, sorted.
func enabledFeatures(image featureImage) ([]string, error) {
	states, err := image.listFeatures()
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
