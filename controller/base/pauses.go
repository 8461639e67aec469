package base

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"

	"wmco/controller/base/leader"
)

// forgetFailure is how long after the end of its pause a failure counts that was not retried: nothing wanted it any
// longer.
const forgetFailure = 10 * LastRetry

// Pauses are those of a controller that does many things in one go, such as writing a thousand Nodes. What has failed
// is retried after pauses of its own, and nothing else waits for it. After an outage of the API server all of it is
// tried again at once.
//
//	Begin --> Try "Node win-1"  done
//	          Try "Node win-2"  failed: tried again after 5 ms, 10 ms, ... 30 s, or when the API server asks for it
//	          Try "Node win-3"  its pause has not passed: why it failed, without a request
//	Again --> when the next of them is due
//
// Its methods may be called by several goroutines.
type Pauses struct {
	now     func() time.Time
	log     logr.Logger
	limiter workqueue.TypedRateLimiter[string]

	mu     sync.Mutex
	failed map[string]failedTry
	// next is when the first of what was not done since BeginPass is due; zero if all was.
	next time.Time
}

// failedTry is why something failed, and when it is retried.
type failedTry struct {
	err error
	due time.Time
}

// NewPauses returns those of a controller of which nothing has failed yet.
func NewPauses(log logr.Logger) *Pauses {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, LastRetry)
	return &Pauses{now: time.Now, log: log, limiter: limiter, failed: map[string]failedTry{}}
}

// AddPauses returns the pauses of one controller. Wake is called after an outage of the API server, if anything waits.
func (m Manager) AddPauses(log logr.Logger, wake func()) *Pauses {
	p := NewPauses(log)
	p.now = m.retries.clock.Now
	m.retries.onRecovery(func() {
		if p.makeAllDue() {
			wake()
		}
	})
	return p
}

// BeginPass begins to do all things once.
func (p *Pauses) BeginPass() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = time.Time{}
	for what, f := range p.failed {
		if p.now().Sub(f.due) >= forgetFailure {
			delete(p.failed, what)
			p.limiter.Forget(what)
		}
	}
}

// Try does something, unless it has failed and its pause has not passed. It returns why it was not done. Requests that
// are made with the context do not wait where the API server asks for a pause: that is the next pause of this thing
// alone.
func (p *Pauses) Try(ctx context.Context, what string, do func(context.Context) error) error {
	if err := p.whyWaiting(what); err != nil {
		return err
	}
	err := do(context.WithValue(ctx, hasPauses{}, true))
	if ctx.Err() == nil && !errors.As(err, new(*leader.LostError)) { // the process ends otherwise, and reports why
		p.noteResult(what, err)
	}
	return err
}

// NextTry returns how long it takes until something is due that was not done since BeginPass; zero if all was.
func (p *Pauses) NextTry() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next.IsZero() {
		return 0
	}
	return max(p.next.Sub(p.now()), firstRetry)
}

// whyWaiting returns why something failed whose pause has not passed.
func (p *Pauses) whyWaiting(what string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.failed[what]
	if !ok || !p.now().Before(f.due) {
		return nil
	}
	p.noteDue(f.due)
	return f.err
}

// noteResult notes what became of a try.
func (p *Pauses) noteResult(what string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		delete(p.failed, what)
		p.limiter.Forget(what)
		return
	}
	pause := p.pauseAfter(what, err)
	p.failed[what] = failedTry{err, p.now().Add(pause)}
	p.noteDue(p.failed[what].due)
	p.log.Info("not done; it is retried", "what", what, "in", pause.String(), "error", err)
}

// pauseAfter returns the pause after an error. What the API server asks for, and an object that has changed since it
// was read, make no pause longer.
func (p *Pauses) pauseAfter(what string, err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		return min(time.Duration(seconds)*time.Second, longestAway)
	}
	if apierrors.IsConflict(err) {
		return retryConflict
	}
	return p.limiter.When(what)
}

func (p *Pauses) noteDue(due time.Time) {
	if p.next.IsZero() || due.Before(p.next) {
		p.next = due
	}
}

// makeAllDue makes everything due. It reports whether there is anything.
func (p *Pauses) makeAllDue() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for what, f := range p.failed {
		p.failed[what] = failedTry{err: f.err, due: p.now()}
		p.limiter.Forget(what)
	}
	return len(p.failed) > 0
}
