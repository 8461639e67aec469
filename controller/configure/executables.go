package configure

import (
	"sync"

	"wmco/bundle"
	"wmco/controller/base"
	"wmco/payload"
)

// Executables are those of this operator that nodes get: of all minor versions of Kubernetes, the ones of the
// cluster's. Another minor version is like another operator: its executables are on a host before a bundle with them is
// published for its node.
type Executables struct {
	set     payload.Set
	Changed base.Signal

	mu     sync.Mutex
	digest bundle.Digest
	known  bool
}

// NewExecutables returns the executables of an operator, of which it is not known yet which ones nodes get.
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

// ChosenDigest returns what ChooseMinorVersion returned last, and whether it was called.
func (x *Executables) ChosenDigest() (bundle.Digest, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.digest, x.known
}
