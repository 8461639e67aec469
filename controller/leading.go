package controller

import (
	"context"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"wmco/controller/leader"
)

// newLock returns the lock of leader election, nil without that. It is the library's, with one that notes when it was renewed in between.
func newLock(o Options) (*leader.Lock, error) {
	if !o.LeaderElection {
		return nil, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	config := rest.AddUserAgent(rest.CopyConfig(o.Config), "leader-election")
	config.Timeout = max(o.Lease.Renew/2, time.Second) // as the library has it: one slow answer does not lose the Lease
	leases, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return leader.New(leader.Options{
		Leases: leases, Lease: types.NamespacedName{Namespace: o.Namespace, Name: operatorName}, Identity: host + "_" + string(uuid.NewUUID()), Renew: o.Lease.Renew,
	}), nil
}

// guardWrites returns the configuration for clients whose writes are refused once this process does not lead any longer, whoever makes them.
func guardWrites(config *rest.Config, lock *leader.Lock) *rest.Config {
	if lock == nil {
		return config
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return guardedWrites{next, lock} })
	return config
}

// guardedWrites are the requests of a process that may lose the Lease.
type guardedWrites struct {
	http.RoundTripper
	lock *leader.Lock
}

// RoundTrip implements http.RoundTripper.
func (g guardedWrites) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		if err := g.lock.Leads(req.Context()); err != nil {
			if req.Body != nil {
				_ = req.Body.Close() // nothing was sent
			}
			return nil, err
		}
	}
	return g.RoundTripper.RoundTrip(req)
}

// leading is an operator that ends when another one leads.
type leading struct {
	manager.Manager
	// lock is nil without leader election.
	lock *leader.Lock
	// retries are those of all controllers, kinds those that cannot be watched now.
	retries *retries
	kinds   *kinds
}

// mayChange is for hosts.Hosts.GuardedBy.
func (l leading) mayChange() func(context.Context) error {
	if l.lock == nil {
		return func(context.Context) error { return nil }
	}
	return l.lock.Confirm
}

// Start works until the context ends, or until another process holds the Lease. It does not wait for anything then: whatever was begun ends
// with this process.
func (l leading) Start(ctx context.Context) error {
	if l.lock == nil {
		return l.Manager.Start(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- l.Manager.Start(ctx) }()
	select {
	case <-l.lock.Lost():
		return l.lock.Err()
	case err := <-ended:
		if lost := l.lock.Err(); lost != nil {
			return lost
		}
		return err
	}
}
