package testenv

import (
	"context"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// retriesLast is for how long a read is repeated, and retryPause the time between two tries.
	retriesLast = time.Minute
	retryPause  = 200 * time.Millisecond
)

// RetryReads returns the configuration of a client for tests: what it reads it asks for again if the API server is
// busy, not there for a moment, or loses etcd. That is no result of the test. Writes, watches, and what an API server
// has decided are not repeated.
func RetryReads(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return retriedReads{next} })
	return config
}

type retriedReads struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r retriedReads) RoundTrip(q *http.Request) (*http.Response, error) {
	if q.Method != http.MethodGet || q.URL.Query().Has("watch") {
		return r.RoundTripper.RoundTrip(q)
	}
	for begin := time.Now(); ; {
		answer, err := r.RoundTripper.RoundTrip(q)
		if !isTransient(answer, err) || time.Since(begin) > retriesLast || q.Context().Err() != nil {
			return answer, err
		}
		if err == nil {
			discard(answer)
		}
		pauseRetry(q.Context())
	}
}

func isTransient(answer *http.Response, err error) bool {
	if err != nil {
		return true
	}
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// discard lets the connection be used again.
func discard(answer *http.Response) {
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
}

func pauseRetry(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retryPause):
	}
}
