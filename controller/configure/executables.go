package configure

import (
	"sync"

	"wmco/bundle"
	"wmco/controller/base"
	"wmco/controller/inputs/desired"
	"wmco/payload"
	"wmco/render"
)

// Executables are the operator's executables for the minor version of Kubernetes that the cluster has. A host has those
// of another minor version before a bundle that needs them is published for its node.
type Executables struct {
	set     payload.Set
	Changed base.Signal

	mu     sync.Mutex
	chosen Chosen
	known  bool
}

// Chosen are the executables that nodes get, and how.
type Chosen struct {
	// Digest is that of all of them, empty if the operator has none.
	Digest bundle.Digest
	From   render.ExecutablesFrom
	// Listed reports whether bundles list where nodes fetch them.
	Listed bool
	// AtOnce is the number of nodes that fetch at once.
	AtOnce int
}

// NewExecutables returns Executables without a chosen minor version.
func NewExecutables(set payload.Set) *Executables {
	return &Executables{set: set, Changed: base.NewSignal()}
}

// ChooseFor chooses by the inputs of the cluster, and returns the digest.
func (x *Executables) ChooseFor(h *desired.Hosts) bundle.Digest {
	c := h.Cluster
	now := Chosen{
		Digest: x.set.For(c.Kubernetes()).Digest(), From: c.Settings.Executables.From, Listed: len(h.ExecutableSources().Places) > 0,
		AtOnce: c.Settings.Rollout.FetchNodes,
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.known || x.chosen != now {
		x.chosen, x.known = now, true
		x.Changed.WakeController()
	}
	return now.Digest
}

// ChosenExecutables returns what ChooseFor chose last; false if it was not called.
func (x *Executables) ChosenExecutables() (Chosen, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.chosen, x.known
}
