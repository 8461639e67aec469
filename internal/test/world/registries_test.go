package world

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"wmco/applier/remote"
	"wmco/internal/test/registrytest"
)

// trouble is what a registry does instead of its work.
type trouble string

const (
	troubleNone  trouble = ""
	troubleOff   trouble = "it is off"
	trouble404   trouble = "404"
	trouble429   trouble = "429"
	trouble500   trouble = "500"
	troubleCut   trouble = "it ends in the middle"
	troubleBytes trouble = "other bytes"
)

// troubles are all of them.
func troubles() []trouble {
	return []trouble{troubleOff, trouble404, trouble429, trouble500, troubleCut, troubleBytes}
}

// registries are those that node agents ask, and their mirrors. Each has the images of all releases.
type registries struct {
	images registrytest.Images
	// slowest is how long an answer takes at most.
	slowest time.Duration

	mu  sync.Mutex
	has trouble
	// mirrors reports whether mirrors alone have it.
	mirrors bool
}

func (r *registries) setTrouble(is trouble, mirrors bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.has, r.mirrors = is, mirrors
}

// RoundTrip implements http.RoundTripper.
func (r *registries) RoundTrip(q *http.Request) (*http.Response, error) {
	if r.slowest > 0 {
		pause(q.Context(), rand.N(r.slowest)) //nolint:gosec // as requests take in life
	}
	if err := q.Context().Err(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	has := r.has
	if r.mirrors && !strings.HasPrefix(q.URL.Host, "mirror") {
		has = troubleNone
	}
	r.mu.Unlock()
	switch has {
	case troubleOff:
		return nil, errors.New("connect: connection refused")
	case trouble404:
		return answer(q, http.StatusNotFound, "{}"), nil
	case trouble429:
		return answer(q, http.StatusTooManyRequests, "{}"), nil
	case trouble500:
		return answer(q, http.StatusInternalServerError, "{}"), nil
	case troubleNone, troubleCut, troubleBytes:
	}
	recorded := httptest.NewRecorder()
	r.images.ServeHTTP(recorded, q)
	response := recorded.Result()
	if response.Request = q; !strings.Contains(q.URL.Path, "/blobs/") {
		return response, nil
	}
	data := recorded.Body.Bytes()
	switch has {
	case troubleCut:
		response.Body = io.NopCloser(io.MultiReader(bytes.NewReader(data[:len(data)/2]), broken{}))
	case troubleBytes:
		response.Body = io.NopCloser(strings.NewReader(strings.Repeat("x", len(data))))
	case troubleNone, troubleOff, trouble404, trouble429, trouble500:
	}
	return response, nil
}

// broken is a connection that ends.
type broken struct{}

// Read implements io.Reader.
func (broken) Read([]byte) (int, error) { return 0, errors.New("read: connection reset by peer") }

// failRegistries has registries not work for a while, or for hours, in which another release of the operator comes.
func (w *world) failRegistries(t *testing.T) {
	all := troubles()
	has, mirrors := all[w.random.IntN(len(all))], w.random.IntN(3) == 0
	w.tell("(%s, mirrors alone: %t)", has, mirrors)
	if w.random.IntN(2) == 0 {
		w.exchange()
		pause(w.ctx, time.Duration(w.random.Int64N(int64(3*time.Minute))))
	}
	w.registries.setTrouble(has, mirrors)
	w.exchange()
	w.putMirrorSet(t, 0)
	pause(w.ctx, time.Duration(w.random.Int64N(int64([]time.Duration{10 * time.Minute, 5 * time.Hour}[w.random.IntN(2)]))))
	w.registries.setTrouble(troubleNone, false)
}

// exchange ends the operator, and the one of the other release begins.
func (w *world) exchange() {
	if w.random.IntN(2) == 0 {
		w.operator.stop()
	} else {
		w.operator.kill()
	}
	w.released = 1 - w.released
	w.live()
}

// exchangeOperator has the operator of the other release come in the middle of a change, sometimes killed at its first writes, and sometimes that of
// the one before again.
func (w *world) exchangeOperator(t *testing.T) {
	w.putMirrorSet(t, 0)
	for range 1 + w.random.IntN(3) {
		pause(w.ctx, time.Duration(w.random.Int64N(int64(2*time.Minute))))
		w.exchange()
		if w.random.IntN(2) == 0 {
			w.killAtWrite()
		}
		pause(w.ctx, time.Duration(w.random.Int64N(int64(30*time.Minute))))
	}
}

// changeSources changes where nodes may get executables from. There is no SSH: what may be copied waits for the registry too.
func (w *world) changeSources(t *testing.T) {
	w.settings.from = []string{"Registry", "Any"}[w.random.IntN(2)]
	w.settings.fetchNodes = 1 + w.random.IntN(3)
	w.write(t)
}

// noSSH reaches no host.
type noSSH struct{}

var errNoSSH = errors.New("there is no SSH")

// Connect implements remote.Transport.
func (noSSH) Connect(_ context.Context, t remote.Target) error {
	return &remote.UnreachableError{Target: t, Phase: remote.PhaseDial, Err: errNoSSH}
}

// Run implements remote.Transport.
func (n noSSH) Run(ctx context.Context, t remote.Target, _ remote.Command) error {
	return n.Connect(ctx, t)
}

// Transfer implements remote.Transport.
func (n noSSH) Transfer(ctx context.Context, t remote.Target, _ func(remote.Files) error) error {
	return n.Connect(ctx, t)
}

// Close implements remote.Transport.
func (noSSH) Close() error { return nil }
