package base

import (
	"context"
	"net/http"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"wmco/bundle/published"
	"wmco/controller/base/leader"
	"wmco/controller/base/named"
	"wmco/controller/gather/objects"
	"wmco/controller/windowsnode/nodelist"
)

// StopWithin is how long the operator waits for what it has begun when it is asked to stop. The rest of the grace
// period of its Pod (deploy/manager/deployment.yaml) is for the Lease: one that is not released holds up the next
// operator until it has expired.
const StopWithin = 20 * time.Second

// NewLock returns the lock of leader election. It is the library's, with one that notes when it was renewed in between.
// Renew is how long a leader tries to renew the Lease.
func NewLock(config *rest.Config, lease types.NamespacedName, renew time.Duration) (*leader.Lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = max(renew/2, time.Second) // as the library has it: one slow answer does not lose the Lease
	leases, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return leader.New(leader.Options{Leases: leases, Lease: lease, Identity: host + "_" + string(uuid.NewUUID()),
		Renew: renew}), nil
}

// CreateLease creates the Lease of leader election, without a holder, where there is none: by its name, which the
// library does not do.
func CreateLease(ctx context.Context, c client.Client, lease types.NamespacedName) error {
	return named.CreateIfAbsent(ctx, c, &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name},
	})
}

// WithRequestRate returns the configuration with the rate of requests that publishing for a thousand nodes needs: three
// seconds. The API server limits its clients by priority and fairness.
func WithRequestRate(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if config.QPS >= 0 {
		config.QPS, config.Burst = max(config.QPS, 300), max(config.Burst, 500)
	}
	return config
}

// GuardWrites returns the configuration for clients whose writes are refused once this process does not lead any
// longer, whoever makes them.
func GuardWrites(config *rest.Config, lock *leader.Lock) *rest.Config {
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
		if err := g.lock.CheckLeading(req.Context()); err != nil {
			if req.Body != nil {
				_ = req.Body.Close() // nothing was sent
			}
			return nil, err
		}
	}
	return g.RoundTripper.RoundTrip(req)
}

// Manager is an operator that ends when another one leads.
type Manager struct {
	manager.Manager
	// lock is nil without leader election.
	lock *leader.Lock
	// retries are those of all controllers, with their clock.
	retries *Retries
	// Kinds are those that cannot be watched now.
	Kinds *Kinds
	// Decoded are the Windows Nodes of the cache, for all who list them.
	Decoded *nodelist.Cache
	// Pages are linked in warnings and conditions.
	Pages published.Pages
	typed client.Client
}

// NewManager returns a manager with what its parts share. Lock is nil without leader election; cached is what the
// cache has unstructured.
func NewManager(m manager.Manager, lock *leader.Lock, again *Retries, kinds *Kinds,
	cached []objects.Want) (Manager, error) {
	kinds.clock = again.clock
	return Manager{m, lock, again, kinds, &nodelist.Cache{}, "", TypedClient(m.GetClient(), cached)}, m.Add(kinds)
}

// GetEventRecorder implements manager.Manager: warnings have the page that explains them.
func (m Manager) GetEventRecorder(name string) events.EventRecorder {
	return linkingRecorder{m.Manager.GetEventRecorder(name), m.Pages}
}

// GetClient implements manager.Manager: it reads objects with a Go type from the cache too.
func (m Manager) GetClient() client.Client { return m.typed }

// Clock is that of all controllers: monotonic.
func (m Manager) Clock() clock.WithTicker { return m.retries.clock }

// MayChangeHosts is for hosts.Hosts.WithGuard.
func (m Manager) MayChangeHosts() func(context.Context) error {
	if m.lock == nil {
		return func(context.Context) error { return nil }
	}
	return m.lock.ConfirmLeading
}

// Start works until the context ends, or until another process holds the Lease. It does not wait for anything then:
// whatever was begun ends with this process.
func (m Manager) Start(ctx context.Context) error {
	if m.lock == nil {
		return m.Manager.Start(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- m.Manager.Start(ctx) }()
	select {
	case <-m.lock.Lost():
		return m.lock.Err()
	case err := <-ended:
		if lost := m.lock.Err(); lost != nil {
			return lost
		}
		return err
	}
}
