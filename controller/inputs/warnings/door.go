package warnings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"wmco/bundle"
)

const (
	// defaultLimit is how long an answer takes at most. The API server waits for 2 seconds (deploy/warnings), and
	// applies what it has no answer for.
	defaultLimit = 1500 * time.Millisecond
	// mostWaiting is how many requests are answered or wait at a time.
	mostWaiting = 16
	// share and burst are how long requests are worked on, of each second for long, and at once: a folder with mirror
	// sets is applied at once, and whoever asks all the time takes a fifth of a processor.
	share, burst = 200 * time.Millisecond, 10 * time.Second
	// mostBytes bounds a request. An API server takes objects of 3 MiB at most (k8s.io/apiserver, pkg/server/config.go,
	// MaxRequestBodyBytes), and those that are asked about are far smaller, the one before and the one after together.
	mostBytes = 3 << 20
	// mostValues bounds the values in it: an empty object takes 3 bytes of a request and a hundred times that in memory,
	// and comparing takes time. Two lists of 1,000 instances with their managed fields have
	// 6,000.
	mostValues = 10_000
)

// door is before the handler of admission requests, which whoever reaches the port may send. It lets one in after the
// other, and reads nothing of a request before that. Whom it turns away, an API server takes for a webhook that failed,
// and applies the object (failurePolicy Ignore).
type door struct {
	next  http.Handler
	limit time.Duration
	// waiting has an element for each request that waits or is in, inside one for the one that is in.
	waiting, inside chan struct{}
	// pace has a token for each millisecond that requests may be worked on.
	pace *rate.Limiter
}

func newDoor(next http.Handler, limit time.Duration) *door {
	return &door{
		next: next, limit: limit, waiting: make(chan struct{}, mostWaiting), inside: make(chan struct{}, 1),
		pace: rate.NewLimiter(rate.Limit(share.Milliseconds()), int(burst.Milliseconds())),
	}
}

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case d.waiting <- struct{}{}:
		defer func() { <-d.waiting }()
	default:
		turnAway(w, http.StatusTooManyRequests)
		return
	}
	ctx, stop := context.WithTimeout(r.Context(), d.limit)
	defer stop()
	select {
	case d.inside <- struct{}{}:
		defer func() { <-d.inside }()
	case <-ctx.Done():
		turnAway(w, http.StatusTooManyRequests)
		return
	}
	if d.pace.Wait(ctx) != nil {
		turnAway(w, http.StatusTooManyRequests)
		return
	}
	defer d.charge(time.Now())
	body, status := readRequest(ctx, w, r)
	if status != http.StatusOK {
		turnAway(w, status)
		return
	}
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	d.next.ServeHTTP(w, r)
}

// charge takes from the pace what a request took since it was let in: the next one waits until that is there again.
func (d *door) charge(since time.Time) {
	for took := time.Since(since); took > 0; took -= burst { // a limiter gives no more than its burst at a time
		d.pace.ReserveN(time.Now(), int(min(took, burst).Milliseconds()))
	}
}

// turnAway answers without reading the rest of a request.
func turnAway(w http.ResponseWriter, status int) {
	w.Header().Set("Connection", "close")
	http.Error(w, http.StatusText(status), status)
}

// readRequest returns the body of a request, or the status with which it is turned away. A body has to be there before
// the context ends. It has to be JSON: the decoder behind the door reads YAML as well, which takes more memory.
func readRequest(ctx context.Context, w http.ResponseWriter, r *http.Request) ([]byte, int) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, http.StatusUnsupportedMediaType
	}
	if end, ok := ctx.Deadline(); ok {
		connection := http.NewResponseController(w)
		_ = connection.SetReadDeadline(end) // a writer of a test has no connection
		defer func() { _ = connection.SetReadDeadline(time.Time{}) }()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBytes))
	tooLarge := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &tooLarge), err == nil && bundle.CheckValues(body, "a request", mostValues) != nil:
		return nil, http.StatusRequestEntityTooLarge
	case err != nil || !json.Valid(body):
		return nil, http.StatusBadRequest
	}
	return body, http.StatusOK
}
