package controller

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// retryConflict is how long after a conflict an object is looked at again.
	retryConflict = time.Second
	// firstRetry and lastRetry are the pauses before the first and each late try after an error; they double in between. The library's own
	// grow to 1,000 s.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 30 * time.Second
	// outage is how long the API server must have answered no request for its next answer to be the end of an outage.
	outage = 5 * time.Second
)

// retries know what of an operator has failed and waits for its next try. When the API server answers after an outage, all of it is tried at
// once, within the rate of the client.
type retries struct {
	now func() time.Time

	mu sync.Mutex
	// failing is since when the API server has answered no request; zero where it has answered the last one.
	failing time.Time
	// waiting are the requests that have failed, with the queues that have them.
	waiting map[waitingFor]queue
}

// waitingFor is a request to a controller.
type waitingFor struct {
	controller string
	reconcile.Request
}

func newRetries() *retries {
	return &retries{now: time.Now, waiting: map[waitingFor]queue{}}
}

// failed notes that a request waits for its next try, succeeded that it does not.
func (r *retries) failed(key waitingFor, q queue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[key] = q
}

func (r *retries) succeeded(key waitingFor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, key)
}

// unanswered notes that the API server has not answered a request.
func (r *retries) unanswered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failing.IsZero() {
		r.failing = r.now()
	}
}

// answered notes that the API server has answered a request. Single failures between answers are no outage: what fails for a reason of its own
// keeps its pauses.
func (r *retries) answered() {
	r.mu.Lock()
	since := r.failing
	r.failing = time.Time{}
	var all map[waitingFor]queue
	if !since.IsZero() && r.now().Sub(since) >= outage {
		all, r.waiting = r.waiting, map[waitingFor]queue{}
	}
	r.mu.Unlock()
	for _, key := range slices.SortedFunc(maps.Keys(all), func(a, b waitingFor) int { return strings.Compare(a.Request.String(), b.Request.String()) }) {
		all[key].Add(key.Request)
	}
}

// transport notes what becomes of the requests of a client.
func (r *retries) transport(next http.RoundTripper) http.RoundTripper {
	return watchedRequests{next, r}
}

type watchedRequests struct {
	http.RoundTripper
	retries *retries
}

// RoundTrip implements http.RoundTripper. A request that its caller has ended says nothing about the API server.
func (w watchedRequests) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(req)
	switch {
	case err == nil && resp.StatusCode < http.StatusInternalServerError && resp.StatusCode != http.StatusTooManyRequests:
		w.retries.answered()
	case err == nil || req.Context().Err() == nil:
		w.retries.unanswered()
	}
	return resp, err
}

// controller adds a controller whose requests are tried again as lastRetry says, each by itself.
func (l leading) controller(name string, r reconcile.Reconciler, workers int) (controller.Controller, error) {
	q := new(queue)
	options := retryOptions()
	options.Reconciler, options.MaxConcurrentReconciles = retrying{r, name, l.retries, q, l.GetLogger().WithName(name)}, workers
	c, err := controller.New(name, l, options)
	if err != nil {
		return nil, err
	}
	return c, c.Watch(source.Func(func(_ context.Context, of queue) error {
		*q = of
		return nil
	}))
}

// retryOptions are those of all controllers. Each has a limiter of its own, in which each request has its own pauses.
func retryOptions() controller.Options {
	return controller.Options{RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)}
}

// retrying is a reconciler of which some errors are none: where an object has changed since it was read, which kubelets, agents and approvers
// write too, and where the API server says when to come again (429 and 503 with Retry-After; client-go waits for that itself a few times).
type retrying struct {
	reconcile.Reconciler
	name    string
	retries *retries
	// queue is that of the controller, once it has started.
	queue *queue
	log   logr.Logger
}

// Reconcile implements reconcile.Reconciler.
func (r retrying) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	key := waitingFor{r.name, req}
	result, err := r.Reconciler.Reconcile(ctx, req)
	if err == nil {
		r.retries.succeeded(key)
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
	r.retries.failed(key, *r.queue)
	return reconcile.Result{}, err
}
