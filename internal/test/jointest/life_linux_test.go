package jointest_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"wmco/controller"
)

// life is that of an operator in memory that may be killed: nothing of it reaches the API server or a host from then on.
type life struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error

	mu    sync.Mutex
	dead  bool
	conns []net.Conn
}

// live starts an operator in memory, which is killed at the end of the test.
func (w *world) live(s settings) *operator {
	w.t.Helper()
	l := &life{ended: make(chan struct{})}
	s.life = l
	var ctx context.Context
	ctx, l.cancel = context.WithCancel(context.Background())
	options, err := s.options(w.output())
	must(w.t, err)
	go func() {
		defer close(l.ended)
		l.err = controller.Run(ctx, options)
	}()
	o := &operator{life: l, t: w.t}
	w.t.Cleanup(o.kill)
	return o
}

var errKilled = errors.New("this operator was killed")

// die kills it. It does not wait for its end.
func (l *life) die() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	for _, c := range l.conns {
		_ = c.Close()
	}
}

func (l *life) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

func (l *life) hasEnded() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// dial reaches the SSH server of a machine while it lives.
func (l *life) dial(ctx context.Context, m *memory, name string) (net.Conn, error) {
	c, err := m.dial(ctx, name)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return nil, errors.Join(errKilled, c.Close())
	}
	l.conns = append(l.conns, c)
	return c, nil
}

// wrap is for rest.Config.Wrap.
func (l *life) wrap(next http.RoundTripper) http.RoundTripper { return mortal{next, l} }

type mortal struct {
	http.RoundTripper
	life *life
}

// RoundTrip implements http.RoundTripper.
func (m mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.life.isDead() {
		return nil, errKilled
	}
	return m.RoundTripper.RoundTrip(r)
}
