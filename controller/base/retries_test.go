package base

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queueFor is a queue as controllers have it, until the end of the test.
func queueFor(t *testing.T) Queue {
	t.Helper()
	q := priorityqueue.New("test", func(o *priorityqueue.Opts[reconcile.Request]) {
		o.RateLimiter = RetryOptions().RateLimiter
	})
	t.Cleanup(q.ShutDown)
	return q
}

// TestWhatIsRetriedAndWhen: conflicts are no errors, and a pause that the API server asks for is kept.
func TestWhatIsRetriedAndWhen(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	conflict := apierrors.NewConflict(nodes, "node", errors.New("changed"))
	busy := apierrors.NewTooManyRequests("busy", 7)
	other := errors.New("other")
	later := reconcile.Result{RequeueAfter: time.Hour}
	for name, test := range map[string]struct {
		err     error
		want    error
		result  reconcile.Result
		waiting int
	}{
		"no error":                  {nil, nil, later, 0},
		"another error":             {other, other, reconcile.Result{}, 1},
		"a conflict":                {conflict, nil, reconcile.Result{RequeueAfter: retryConflict}, 0},
		"a wrapped one":             {fmt.Errorf("writing: %w", conflict), nil, reconcile.Result{RequeueAfter: retryConflict}, 0},
		"a pause that is asked for": {fmt.Errorf("writing: %w", busy), nil, reconcile.Result{RequeueAfter: 7 * time.Second}, 0},
		"a server error":            {apierrors.NewInternalError(other), apierrors.NewInternalError(other), reconcile.Result{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inner := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return later, test.err })
			all, q := NewRetries(), queueFor(t)
			result, err := retrying{inner, "test", all, &q, logr.Discard()}.Reconcile(t.Context(), reconcile.Request{})
			if fmt.Sprint(err) != fmt.Sprint(test.want) || result != test.result || len(all.waiting) != test.waiting {
				t.Errorf("%v, %v, %d waiting", result, err, len(all.waiting))
			}
		})
	}
}

// TestPausesEndAtHalfAMinute: those of the library end at a quarter of an hour.
func TestPausesEndAtHalfAMinute(t *testing.T) {
	limiter := RetryOptions().RateLimiter
	one, another := RequestsFor([]string{"one"})[0], RequestsFor([]string{"another"})[0]
	var longest time.Duration
	for range 30 {
		longest = max(longest, limiter.When(one))
	}
	if longest != 30*time.Second || limiter.When(another) != firstRetry {
		t.Errorf("the longest pause is %s, that of another request %s", longest, limiter.When(another))
	}
}

// TestAfterAnOutageEverythingIsTriedAtOnce, and not after single failures: what fails for a reason of its own keeps its pauses.
func TestAfterAnOutageEverythingIsTriedAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		// answers are whether the API server answers, a second apart.
		answers []bool
		want    []string
	}{
		"an outage":                 {[]bool{true, false, false, false, false, false, false, true}, []string{"node-1", "node-2", "status"}},
		"it has not ended":          {[]bool{true, false, false, false, false, false, false, false}, nil},
		"some requests fail":        {[]bool{true, false, false, true, false, false, true, false, true}, nil},
		"nothing has failed lately": {[]bool{true, true, true, true, true, true, true, true}, nil},
	} {
		all, q := NewRetries(), queueFor(t)
		now := time.Unix(0, 0)
		all.now = func() time.Time { return now }
		for _, name := range []string{"node-1", "node-2", "status"} {
			req := RequestsFor([]string{name})[0]
			q.AddAfter(req, time.Hour)
			all.failed(waitingFor{"test", req}, q)
		}
		well := RequestsFor([]string{"well"})[0]
		all.failed(waitingFor{"test", well}, q)
		all.succeeded(waitingFor{"test", well})
		for _, answer := range tt.answers {
			now = now.Add(time.Second)
			all.Transport(transportFunc(func(*http.Request) (*http.Response, error) {
				if answer {
					return &http.Response{StatusCode: http.StatusNotFound}, nil
				}
				return &http.Response{StatusCode: http.StatusServiceUnavailable}, nil
			})).RoundTrip(&http.Request{}) //nolint:bodyclose,errcheck // it has none
		}
		q.Add(RequestsFor([]string{"last"})[0])
		var got []string
		for {
			req, _ := q.Get()
			q.Done(req)
			if req.Name == "last" {
				break
			}
			got = append(got, req.Name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: tried at once: %q, want %q", name, got, tt.want)
		}
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
