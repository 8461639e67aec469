package base

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queueFor is a queue as controllers have it, until the end of the test.
func queueFor(t *testing.T) Queue {
	t.Helper()
	q := priorityqueue.New("test", func(o *priorityqueue.Opts[reconcile.Request]) {
		o.RateLimiter = queueOptions(clock.RealClock{}).RateLimiter
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
			all, q := NewRetries(clock.RealClock{}), queueFor(t)
			result, err := retrying{inner, "test", all, &q, logr.Discard()}.Reconcile(t.Context(), reconcile.Request{})
			if fmt.Sprint(err) != fmt.Sprint(test.want) || result != test.result || len(all.waiting) != test.waiting {
				t.Errorf("%v, %v, %d waiting", result, err, len(all.waiting))
			}
		})
	}
}

// TestPausesEndAtHalfAMinute: those of the library end at a quarter of an hour.
func TestPausesEndAtHalfAMinute(t *testing.T) {
	limiter := queueOptions(clock.RealClock{}).RateLimiter
	one, another := RequestsFor([]string{"one"})[0], RequestsFor([]string{"another"})[0]
	var longest time.Duration
	for range 30 {
		longest = max(longest, limiter.When(one))
	}
	if longest != 30*time.Second || limiter.When(another) != firstRetry {
		t.Errorf("the longest pause is %s, that of another request %s", longest, limiter.When(another))
	}
}

// TestPausesAreThoseOfTheClock, where it is another one than this computer's, whose queue knows priorities.
func TestPausesAreThoseOfTheClock(t *testing.T) {
	if queueOptions(clock.RealClock{}).NewQueue != nil {
		t.Error("the library's own queue is not used")
	}
	synctest.Test(t, func(t *testing.T) {
		now := clocktesting.NewFakeClock(time.Now())
		o := queueOptions(now)
		q := o.NewQueue("test", o.RateLimiter)
		step := func(d time.Duration) {
			synctest.Wait()
			now.Step(d)
			synctest.Wait()
		}
		later, failed := RequestsFor([]string{"later"})[0], RequestsFor([]string{"failed"})[0]
		q.AddAfter(later, time.Hour)
		q.AddRateLimited(failed)
		for _, want := range []struct {
			reconcile.Request
			after time.Duration
		}{{failed, firstRetry}, {later, time.Hour - firstRetry}} {
			if step(want.after - time.Nanosecond); q.Len() != 0 {
				t.Errorf("%s is due too early", want.Name)
			}
			if step(time.Nanosecond); q.Len() != 1 {
				t.Fatalf("%s is not due", want.Name)
			}
			if got, _ := q.Get(); got != want.Request {
				t.Errorf("%s is due, want %s", got.Name, want.Name)
			}
			q.Done(want.Request)
		}
		q.ShutDown()
		step(time.Minute) // its goroutines end
	})
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
		now := clocktesting.NewFakeClock(time.Unix(0, 0))
		all, q := NewRetries(now), queueFor(t)
		for _, name := range []string{"node-1", "node-2", "status"} {
			req := RequestsFor([]string{name})[0]
			q.AddAfter(req, time.Hour)
			all.noteWaiting(waitingFor{"test", req}, q)
		}
		well := RequestsFor([]string{"well"})[0]
		all.noteWaiting(waitingFor{"test", well}, q)
		all.noteSucceeded(waitingFor{"test", well})
		for _, answer := range tt.answers {
			now.Step(time.Second)
			all.WrapTransport(transportFunc(func(*http.Request) (*http.Response, error) {
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

// TestALongPauseOccupiesNoWorker: client-go waits ten times in one request for as long as the API server asks for. A short pause is its own.
func TestALongPauseOccupiesNoWorker(t *testing.T) {
	for asked, want := range map[string]struct {
		seconds, requests int
		works             bool
	}{
		"1": {0, 2, true}, "120": {120, 1, false}, "86400": {300, 1, false},
	} {
		t.Run(asked, func(t *testing.T) {
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if requests++; requests > 1 {
					_, _ = w.Write([]byte("{}"))
					return
				}
				w.Header().Set("Retry-After", asked)
				http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
			}))
			t.Cleanup(server.Close)
			config := &rest.Config{Host: server.URL}
			config.Wrap(NewRetries(clock.RealClock{}).WrapTransport)
			clients, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
			defer stop()
			err = clients.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
			seconds, _ := apierrors.SuggestsClientDelay(err)
			if seconds != want.seconds || requests != want.requests || (err == nil) != want.works || ctx.Err() != nil {
				t.Errorf("%d requests, %v, which asks for %d s; want %+v", requests, err, seconds, want)
			}
			if err != nil && (!apierrors.IsTooManyRequests(err) || pauseAfter(err, time.Second) != time.Duration(want.seconds)*time.Second) {
				t.Errorf("%v: an informer waits for %s", err, pauseAfter(err, time.Second))
			}
		})
	}
}
