package base

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// retryConflict is how long after a conflict an object is looked at again.
	retryConflict = time.Second
	// firstRetry is the pause before the first try after an error.
	firstRetry = 5 * time.Millisecond
	// LastRetry is the longest pause between tries; they double from the first one. The library's own grow to 1,000 s.
	LastRetry = 30 * time.Second
	// outage is how long the API server must have answered no request for its next answer to be the end of an outage.
	outage = 5 * time.Second
	// longestPause is the longest that a request waits because the API server asks for a pause. A longer one is left
	// to the caller, so that no worker only waits: client-go would wait
	// ten times in one request (k8s.io/client-go, rest/with_retry.go).
	longestPause = 10 * time.Second
	// longestAway is the longest pause that is kept.
	longestAway = 5 * time.Minute
)

// Retries know what of an operator has failed and waits for its next try. When the API server answers after an outage,
// all of it is tried at once, within the rate of the client.
type Retries struct {
	clock clock.WithTicker

	mu sync.Mutex
	// failing is since when the API server has answered no request; zero where it has answered the last one.
	failing time.Time
	// waiting are the requests that have failed, with the queues that have them.
	waiting map[waitingFor]Queue
	// recovered are called at the end of an outage.
	recovered []func()
}

// waitingFor is a request to a controller.
type waitingFor struct {
	controller string
	reconcile.Request
}

// NewRetries returns what knows of no failure. The clock is that of all controllers.
func NewRetries(c clock.WithTicker) *Retries {
	return &Retries{clock: c, waiting: map[waitingFor]Queue{}}
}

// noteWaiting notes that a request waits for its next try, succeeded that it does not.
func (r *Retries) noteWaiting(key waitingFor, q Queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[key] = q
}

func (r *Retries) noteSucceeded(key waitingFor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, key)
}

// onRecovery has a function called when the API server answers after an outage. It must not wait for anything.
func (r *Retries) onRecovery(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recovered = append(r.recovered, do)
}

// noteUnanswered notes that the API server has not answered a request.
func (r *Retries) noteUnanswered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing.IsZero() {
		r.failing = r.clock.Now()
	}
}

// noteAnswered notes that the API server has answered a request. Single failures between answers are no outage: what
// fails for a reason of its own keeps its pauses.
func (r *Retries) noteAnswered() {
	r.mu.Lock()
	since := r.failing
	r.failing = time.Time{}
	var all map[waitingFor]Queue
	var recovered []func()
	if !since.IsZero() && r.clock.Since(since) >= outage {
		all, r.waiting, recovered = r.waiting, map[waitingFor]Queue{}, r.recovered
	}
	r.mu.Unlock()
	for _, do := range recovered {
		do()
	}
	for _, key := range slices.SortedFunc(maps.Keys(all), func(a, b waitingFor) int {
		return strings.Compare(a.Request.String(), b.Request.String())
	}) {
		all[key].Add(key.Request)
	}
}

// WrapTransport notes what becomes of the requests of a client.
func (r *Retries) WrapTransport(next http.RoundTripper) http.RoundTripper {
	return watchedRequests{next, r}
}

type watchedRequests struct {
	http.RoundTripper
	retries *Retries
}

// RoundTrip implements http.RoundTripper. A request that its caller has ended does not count against the API server.
func (w watchedRequests) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(req)
	switch {
	case err == nil && resp.StatusCode < http.StatusInternalServerError &&
		resp.StatusCode != http.StatusTooManyRequests:
		w.retries.noteAnswered()
	case err == nil || req.Context().Err() == nil:
		w.retries.noteUnanswered()
	}
	longest := longestPause
	if req.Context().Value(hasPauses{}) != nil {
		longest = 0
	}
	if err == nil && asksForPause(resp) > longest {
		err = errors.Join(pauseError(req, resp), resp.Body.Close())
		return nil, err
	}
	return resp, err
}

// hasPauses is the key of a context whose requests wait for no pause that the API server asks for: the caller has
// pauses of its own (Pauses).
type hasPauses struct{}

// asksForPause returns for how long an API server that does nothing for a request asks to be left alone, zero if it
// does not (RFC 9110, section 10.2.3; API servers write seconds).
func asksForPause(resp *http.Response) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < http.StatusInternalServerError {
		return 0
	}
	seconds, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 32)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// pauseError is the answer as an error, whose pause apierrors.SuggestsClientDelay returns.
func pauseError(req *http.Request, resp *http.Response) error {
	seconds := int(min(asksForPause(resp), longestAway) / time.Second)
	return apierrors.NewGenericServerResponse(resp.StatusCode, strings.ToLower(req.Method), schema.GroupResource{}, "",
		"", seconds, true)
}

// NewController adds a controller whose requests are retried as by LastRetry, each on its own.
func (m Manager) NewController(name string, r reconcile.Reconciler, workers int) (controller.Controller, error) {
	q := new(Queue)
	options := queueOptions(m.retries.clock)
	options.Reconciler, options.MaxConcurrentReconciles = retrying{r, name, m.retries, q,
		m.GetLogger().WithName(name)}, workers
	c, err := controller.New(name, m, options)
	if err != nil {
		return nil, err
	}
	return c, c.Watch(source.Func(func(_ context.Context, of Queue) error {
		*q = of
		return nil
	}))
}

// queueOptions are those of all controllers. Each has a limiter of its own, in which each request has its own pauses.
// The library's queue takes no clock: where the clock is not that of this computer, its place is taken by client-go's,
// which knows no priorities.
func queueOptions(c clock.WithTicker) controller.Options {
	o := controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, LastRetry)}
	if c != (clock.RealClock{}) {
		o.NewQueue = func(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) Queue {
			return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
				workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, Clock: c})
		}
	}
	return o
}

// retrying is a reconciler of which some errors are none: where an object has changed since it was read, which
// kubelets, agents and approvers write too, and where the API server asks to come again later (429 and 503 with
// Retry-After; client-go waits for that itself a few times).
type retrying struct {
	reconcile.Reconciler
	name    string
	retries *Retries
	// queue is that of the controller, once it has started.
	queue *Queue
	log   logr.Logger
}

// Reconcile implements reconcile.Reconciler.
func (r retrying) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	key := waitingFor{r.name, req}
	result, err := r.Reconciler.Reconcile(ctx, req)
	if err == nil {
		r.retries.noteSucceeded(key)
		return result, nil
	}
	if apierrors.IsConflict(err) {
		r.log.V(1).Info("an object has changed since it was read; it is read again", "name", req.Name, "error", err)
		return reconcile.Result{RequeueAfter: retryConflict}, nil
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		r.log.Info("the API server asks for a pause", "name", req.Name, "seconds", seconds, "error", err)
		return reconcile.Result{RequeueAfter: time.Duration(seconds) * time.Second}, nil
	}
	r.retries.noteWaiting(key, *r.queue)
	return reconcile.Result{}, err
}
