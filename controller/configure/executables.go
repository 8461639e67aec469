package configure

import (
	"sync"

	"wmco/bundle"
	"wmco/controller/base"
	"wmco/payload"
)

// Executables are the operator's executables for the minor version of Kubernetes that the cluster has. Those of another
// minor version are copied to a host before a bundle that needs them is published for its node.
type Executables struct {
	set     payload.Set
	Changed base.Signal

	mu     sync.Mutex
	digest bundle.Digest
	known  bool
}

// NewExecutables returns Executables without a chosen minor version.
func NewExecutables(set payload.Set) *Executables {
	return &Executables{set: set, Changed: base.NewSignal()}
}

// ChooseMinorVersion sets the minor version of Kubernetes that nodes get, and returns the digest of their executables,
// empty if the operator has none.
func (x *Executables) ChooseMinorVersion(kubernetes string) bundle.Digest {
	digest := x.set.For(kubernetes).Digest()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.known || x.digest != digest {
		x.digest, x.known = digest, true
		x.Changed.WakeController()
	}
	return digest
}

// ChosenDigest returns the last digest of ChooseMinorVersion; false if it was not called.
func (x *Executables) ChosenDigest() (bundle.Digest, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.digest, x.known
}
