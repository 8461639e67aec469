// Package leader reports whether this process still holds the Lease.
//
//	leader election --renews--> Lock --notes when--> CheckLeading, ConfirmLeading: before a write, before a host is changed
//	                              '---another holder---> Lost: the process ends
//
// The library of leader election gives up only when it could not renew the Lease for a while, so a process that was
// frozen for longer than the Lease would go on beside the next holder until then. It decides when to renew; this
// package never writes to the Lease.
package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ErrNotLeading means that this process may not change anything: another one leads, or it is not known that this one
// still does.
var ErrNotLeading = errors.New("this process does not lead")

// LostError means that another process holds the Lease. This one ends.
type LostError struct {
	// Lease is its name, Holder who has it.
	Lease, Holder string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("Lease %s is held by %s now: another operator works for this cluster, so this one ends",
		e.Lease, e.Holder)
}

// Is makes a LostError an ErrNotLeading.
func (e *LostError) Is(target error) bool { return target == ErrNotLeading }

const (
	// askLimit is how long a question for the holder of the Lease may take.
	askLimit = 5 * time.Second
	// askedFor is how long an answer is used by others that ask: what changes hosts comes in bursts.
	askedFor = time.Second
	// clockSlack is how far two clocks of this computer may differ before the Lease is looked at.
	clockSlack = 2 * time.Second
)

// Lock is that of leader election, which notes when it was renewed. The methods of resourcelock.Interface are for the
// library alone, the others may be called by many goroutines.
type Lock struct {
	*resourcelock.LeaseLock
	// look reads the Lease for others than the library, whose lock keeps what it has read: it would renew a Lease that
	// it has not seen change.
	look *resourcelock.LeaseLock
	// valid is how long after a renewal this process leads: no longer than the library tries to renew, which is less
	// than the Lease lasts.
	valid time.Duration
	now   func() reading

	// asking is held while the Lease is looked at; it has room for one.
	asking chan struct{}
	lost   chan struct{}

	mu sync.Mutex
	// held is true once this process has had the Lease, released once it has given that back. Renewed is when the last
	// renewal began, and asked when the last look at the Lease began that found this process.
	held, released bool
	renewed, asked reading
	// err is why this process leads no longer; nil while it may.
	err *LostError
}

// Options are those of a Lock.
type Options struct {
	Leases coordinationclient.LeasesGetter
	// Lease is its name.
	Lease types.NamespacedName
	// Identity is that of this process, which no other one has.
	Identity string
	// Renew is how long the library tries to renew the Lease.
	Renew time.Duration
}

// New returns the lock of a Lease.
func New(o Options) *Lock {
	lease := func() *resourcelock.LeaseLock {
		return &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: o.Lease.Namespace, Name: o.Lease.Name}, Client: o.Leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: o.Identity},
		}
	}
	return &Lock{LeaseLock: lease(), look: lease(), valid: o.Renew, now: newClockReader(),
		asking: make(chan struct{}, 1), lost: make(chan struct{})}
}

// Lost is closed when another process holds the Lease that this one has held. Err names it.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

// Err returns a *LostError when Lost is closed.
func (l *Lock) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return nil
	}
	return l.err
}

// Get reads the Lease for the library.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	begun := l.now()
	record, raw, err := l.LeaseLock.Get(ctx)
	if err == nil {
		l.noteHolder(record.HolderIdentity, begun)
		// The library waits for as long as the Lease says. A holder that works renews it long before.
		record.LeaseDurationSeconds = min(record.LeaseDurationSeconds, int(2*l.valid/time.Second))
	}
	return record, raw, err
}

// Create creates the Lease for the library.
func (l *Lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	begun := l.now()
	err := l.LeaseLock.Create(ctx, r)
	if err == nil {
		l.noteRenewal(r.HolderIdentity, begun)
	}
	return err
}

// Update renews or releases the Lease for the library. A Lease that another process holds is left alone: the library
// would release it at the end, as it was its own when the library looked last.
func (l *Lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if err := l.Err(); err != nil {
		return err
	}
	begun := l.now()
	err := l.LeaseLock.Update(ctx, r)
	if err == nil {
		l.noteRenewal(r.HolderIdentity, begun)
	}
	return err
}

// noteHolder notes who holds the Lease.
func (l *Lock) noteHolder(holder string, begun reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case holder == l.Identity():
		l.asked = begun
	case l.held && holder != "" && l.err == nil:
		l.err = &LostError{l.Describe(), holder}
		close(l.lost)
	}
}

// noteRenewal notes a renewal that began then; without a holder, that this process has given the Lease back.
func (l *Lock) noteRenewal(holder string, begun reading) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released = holder != l.Identity(); !l.released {
		l.held, l.renewed, l.asked = true, begun, begun
	}
}

// CheckLeading returns an error if this process must not write to the cluster. It asks nothing as long as the Lease was
// renewed lately by all clocks. A process that has not held the Lease yet may write: what an operator prepares before
// it leads is the same for all.
func (l *Lock) CheckLeading(ctx context.Context) error {
	l.mu.Lock()
	held, lost, asked, now := l.held, l.err, l.asked, l.now()
	expired := l.isExpired(now)
	l.mu.Unlock()
	switch {
	case lost != nil:
		return lost
	case !held, !expired && !now.wallClockJumped(asked):
		return nil
	}
	return l.readLeaseOnce(ctx)
}

// isExpired reports whether another process may have the Lease. It is called with the mutex held.
func (l *Lock) isExpired(now reading) bool {
	return !l.held || l.released || now.ageSince(l.renewed) >= l.valid
}

// ConfirmLeading returns an error if this process must not change a host. It looks at the Lease, as a computer that was
// paused may have no clock that shows it. Where the API server gives no answer, the time since the last renewal
// decides.
func (l *Lock) ConfirmLeading(ctx context.Context) error {
	if l.isFresh() {
		return nil
	}
	return l.readLeaseOnce(ctx)
}

// isFresh reports whether a look at the Lease has just found this process, and the Lease cannot have ended.
func (l *Lock) isFresh() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	return l.err == nil && !l.isExpired(now) && now.ageSince(l.asked) < askedFor && !now.wallClockJumped(l.asked)
}

// readLeaseOnce looks at the Lease, once for all who wait for the answer.
func (l *Lock) readLeaseOnce(ctx context.Context) error {
	select {
	case l.asking <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.asking }()
	if l.isFresh() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	begun := l.now()
	record, _, err := l.look.Get(ctx)
	if err == nil {
		l.noteHolder(record.HolderIdentity, begun)
	}
	if err := l.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.isExpired(l.now()):
		return fmt.Errorf("%w: Lease %s was not renewed for %s", ErrNotLeading, l.Describe(), l.valid)
	case err == nil && record.HolderIdentity == l.Identity():
		return nil
	case err == nil || apierrors.IsNotFound(err):
		return fmt.Errorf("%w: Lease %s has no holder", ErrNotLeading, l.Describe())
	case begun.wallClockJumped(l.asked):
		return fmt.Errorf("%w for sure, as a clock of this computer has jumped: %w", ErrNotLeading, err)
	}
	return nil
}
