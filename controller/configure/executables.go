package configure

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/controller/base"
	"wmco/controller/hosts"
	"wmco/controller/inputs/desired"
	"wmco/payload"
	"wmco/render"
)

// Executables are the operator's executables for the minor version of Kubernetes that the cluster has. A host has those
// of another minor version before a bundle that needs them is published for its node.
type Executables struct {
	set     payload.Set
	Changed base.Signal

	// CountNodes returns how many nodes fetch executables; nil counts none.
	CountNodes func(context.Context) (int, error)

	mu     sync.Mutex
	chosen Chosen
	known  bool

	// beginning is held while a host begins to fetch; hosts are those that fetch before they have a node agent.
	beginning sync.Mutex
	hosts     atomic.Int64
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

// CountHosts returns how many hosts fetch executables before they have a node agent.
func (x *Executables) CountHosts() int { return int(x.hosts.Load()) }

// beginFetch is called before a host fetches executables, and end after it. hosts.ErrBusy means that as many fetch as may.
func (x *Executables) beginFetch(ctx context.Context, atOnce int) (end func(), err error) {
	x.beginning.Lock()
	defer x.beginning.Unlock()
	n := x.CountHosts()
	if x.CountNodes != nil {
		nodes, err := x.CountNodes(ctx)
		if err != nil {
			return nil, err
		}
		n += nodes
	}
	if n >= atOnce {
		return nil, fmt.Errorf("%w: rollout.fetchNodes hosts fetch executables, and this one follows", hosts.ErrBusy)
	}
	x.hosts.Add(1)
	return func() { x.hosts.Add(-1) }, nil
}

// fetchExecutables is how the host gets executables; nil where they are sent over SSH alone. note is told why it could
// not fetch, where they are sent then.
func (h Host) fetchExecutables(note func(why string)) *remote.Fetch {
	settings := h.Wanted.Cluster.Settings
	from, listed := settings.Executables.From, len(h.Wanted.ExecutableSources().Places) > 0
	if from == render.ExecutablesFromSSH || !listed && from != render.ExecutablesFromRegistry {
		return nil
	}
	return &remote.Fetch{
		Begin: func(ctx context.Context) (func(), error) {
			return h.Executables.beginFetch(ctx, settings.Rollout.FetchNodes)
		},
		Failed: func(why string) error {
			h.Log.Info("a host cannot fetch executables", "host", h.ID(), "why", why)
			if from == render.ExecutablesFromRegistry {
				return &refusal{reason: ReasonNotFetched, message: "the host cannot fetch the executables: " + why,
					fix: "correct the cause, such as a missing mirror, password, proxy or CA; or set executables.from: Any in " + render.SettingsConfigMap}
			}
			note(why)
			return nil
		},
	}
}
