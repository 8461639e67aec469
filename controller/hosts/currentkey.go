package hosts

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"wmco/bundle"
	"wmco/controller/keys"
)

// currentKey is the public half of the key of the Secret, as it was read last.
type currentKey struct {
	mu sync.Mutex
	// public is that of the last key that could be used, problem why the Secret cannot be used now.
	public  string
	problem bundle.Finding
	calls   []func()
}

// noteKey notes what the Secret has. Those who asked are called when that is another key, or when it can be used no
// longer or again.
func (c *currentKey) noteKey(key keys.Key, findings bundle.Findings) {
	c.mu.Lock()
	public, problem := c.public, bundle.Finding{}
	if findings.Refused() {
		problem = findings.Sorted()[0]
	} else {
		public = key.PublicKey()
	}
	differs := public != c.public || problem.Reason != c.problem.Reason
	c.public, c.problem = public, problem
	calls := c.calls
	c.mu.Unlock()
	if !differs {
		return
	}
	for _, f := range calls {
		f()
	}
}

// OnKeyChange has f called when another key was read from the Secret. It is called before the Secret is read.
func (l *Login) OnKeyChange(f func()) { l.current.calls = append(l.current.calls, f) }

// PublicKey returns the public key of the Secret, "ALGORITHM BASE64", as it was read last, and why the Secret cannot be
// used now, zero if it can. Then the key is the last one that this process has read, empty where there was none: a
// Secret that is missing or damaged withdraws no key from hosts.
func (l *Login) PublicKey() (string, bundle.Finding) {
	l.current.mu.Lock()
	defer l.current.mu.Unlock()
	return l.current.public, l.current.problem
}

// ReadPublicKey reads the Secret, and returns PublicKey. A Secret that the operator may not read is as one that is
// missing.
func (l *Login) ReadPublicKey(ctx context.Context) (string, error) {
	if _, _, err := l.PrivateKey(ctx); err != nil && !apierrors.IsForbidden(err) {
		return "", err
	}
	public, _ := l.PublicKey()
	return public, nil
}
