package fleettest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"wmco/controller"
	"wmco/internal/test/observer"
	"wmco/internal/test/testenv"
)

// life is one run of the operator, without leader election: it believes that it leads.
type life struct {
	*mortal
	ended chan struct{}
}

// mortal is how an operator reaches the API server. After a number of writes it is dead: the answer to the last one is lost, and nothing
// that it still wants reaches the API server, as if its process had been killed.
type mortal struct {
	// left is the number of writes until it dies; negative is never.
	left atomic.Int64
	dead atomic.Bool
	die  context.CancelFunc
	// lag is how late it learns of what has changed.
	lag time.Duration
	// last is the last write.
	last atomic.Pointer[string]
}

var errDead = errors.New("the operator was killed")

// connection is one of the operator's transports: it has one for each kind of client.
type connection struct {
	*mortal
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. Leases and Events are no steps of the operator.
func (m connection) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.dead.Load() {
		return nil, errDead
	}
	counts := r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") && !strings.Contains(r.URL.Path, "/events")
	answer, err := m.next.RoundTrip(r)
	switch {
	case err != nil:
		return nil, err
	case m.lag > 0 && r.URL.Query().Get("watch") != "":
		answer.Body = newLate(answer.Body, m.lag)
	case counts && answer.StatusCode < http.StatusBadRequest && m.left.Add(-1) == 0:
		_ = answer.Body.Close() // it is not read
		what := r.Method + " " + r.URL.Path
		m.last.Store(&what)
		m.kill()
		return nil, errDead
	}
	return answer, nil
}

func (m *mortal) kill() {
	m.dead.Store(true)
	m.die()
}

// late is the answer to a watch of which everything arrives late, and nothing slower.
type late struct {
	body   io.Closer
	chunks chan chunk
	done   chan struct{}
	// closed makes done close once, left is what was not read of the last chunk.
	closed sync.Once
	left   []byte
}

// chunk is what arrives at one moment.
type chunk struct {
	data []byte
	err  error
	at   time.Time
}

func newLate(body io.ReadCloser, by time.Duration) *late {
	l := &late{body: body, chunks: make(chan chunk, 10_000), done: make(chan struct{})}
	go func() {
		for {
			data := make([]byte, 32<<10)
			n, err := body.Read(data)
			select {
			case l.chunks <- chunk{data[:n], err, time.Now().Add(by)}:
			case <-l.done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return l
}

func (l *late) Read(p []byte) (int, error) {
	if len(l.left) == 0 {
		select {
		case c := <-l.chunks:
			time.Sleep(time.Until(c.at)) // a slow connection: what the test varies
			if len(c.data) == 0 {
				return 0, c.err
			}
			l.left = c.data
			if c.err != nil {
				l.chunks <- chunk{err: c.err}
			}
		case <-l.done:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

func (l *late) Close() error {
	l.closed.Do(func() { close(l.done) })
	return l.body.Close()
}

// live starts an operator that dies after a number of writes; 0 is never.
func (f *fleet) live(t *testing.T, writes int, lag time.Duration) *life {
	t.Helper()
	config := rest.CopyConfig(f.plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{&mortal{die: cancel, lag: lag}, make(chan struct{})}
	l.left.Store(int64(writes))
	if f.network != nil {
		config.Wrap(f.network.Wrap)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return connection{l.mortal, next} })
	o := controller.Options{Config: config, Version: version, HealthAddress: "0", MetricsAddress: "0", SkipNameValidation: true, Environment: f.environment, Log: logr.FromSlogHandler(logs().Handler()).WithName("operator")}
	if f.network != nil {
		o.Now = f.network.Now
	}
	go func() {
		defer close(l.ended)
		for ctx.Err() == nil { // a Deployment restarts one that has ended
			if err := controller.Run(ctx, o); ctx.Err() == nil {
				logs().Warn("the operator ended", "error", err)
				time.Sleep(time.Second)
			}
		}
	}()
	before := f.stop
	f.stop = sync.OnceFunc(func() { before(); l.end() })
	return l
}

// end kills the operator and waits for its end.
func (l *life) end() {
	l.kill()
	<-l.ended
}

// storm runs one operator after the other until all is done. Each is killed after as many writes as writes returns for it; 0 is never. It
// returns the number of kills.
func (f *fleet) storm(t *testing.T, o *observer.Observer, writes func(life int) int, done func() bool) int {
	t.Helper()
	kills := 0
	for {
		l := f.live(t, writes(kills), 0)
		f.await(t, o, "all nodes, or the end of an operator", func() bool { return l.dead.Load() || done() })
		if !l.dead.Load() {
			return kills
		}
		<-l.ended
		kills++
	}
}

// await waits as long as nodes go on: a fleet of any size may take its time.
func (f *fleet) await(t *testing.T, o *observer.Observer, what string, done func() bool) {
	t.Helper()
	for ok := false; !ok; {
		_, before := o.Progress()
		if err := testenv.Eventually(t.Context(), what, func() bool {
			_, moves := o.Progress()
			ok = done()
			return ok || moves != before
		}); err != nil {
			t.Fatalf("%v\n%s%s", err, o, &recent)
		}
	}
}
