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

	"k8s.io/client-go/util/flowcontrol"

	"wmco/bundle"
)

const (
	// defaultLimit is how long an answer takes at most. The API server waits for 2 seconds (deploy/warnings), and applies what it has no answer for.
	defaultLimit = 1500 * time.Millisecond
	// mostWaiting is how many requests are answered or wait at a time.
	mostWaiting = 16
	// pace and burst are how many requests are answered in a second for long, and at once: a folder with mirror sets is applied at once, and whoever asks
	// all the time takes no whole processor.
	pace, burst = 2, 50
	// mostBytes bounds a request. An API server takes objects of 3 MiB at most (k8s.io/apiserver, pkg/server/config.go, MaxRequestBodyBytes), and those that
	// are asked about are far smaller, the one before and the one after together.
	mostBytes = 3 << 20
	// mostValues bounds what is in it: an empty object takes 3 bytes of a request and a hundred times that in memory. Two lists of 5,000 instances with
	// their managed fields have 30,000.
	mostValues = 100_000
)

// door is before the handler of admission requests, which whoever reaches the port may send. It lets one in after the other, and reads nothing of a request
// before that. Whom it turns away, an API server takes for a webhook that failed, and applies the object (failurePolicy Ignore).
type door struct {
	next  http.Handler
	limit time.Duration
	// waiting has an element for each request that waits or is in, inside one for the one that is in.
	waiting, inside chan struct{}
	pace            flowcontrol.RateLimiter
}

func newDoor(next http.Handler, limit time.Duration) *door {
	return &door{
		next: next, limit: limit, waiting: make(chan struct{}, mostWaiting), inside: make(chan struct{}, 1),
		pace: flowcontrol.NewTokenBucketRateLimiter(pace, burst),
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
	body, status := readRequest(ctx, w, r)
	if status != http.StatusOK {
		turnAway(w, status)
		return
	}
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	d.next.ServeHTTP(w, r)
}

// turnAway answers without reading what is left of a request.
func turnAway(w http.ResponseWriter, status int) {
	w.Header().Set("Connection", "close")
	http.Error(w, http.StatusText(status), status)
}

// readRequest returns the body of a request, or the status with which it is turned away. A body has to be there before the context ends. It has to be JSON:
// the decoder behind the door reads YAML as well, which takes more memory.
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
