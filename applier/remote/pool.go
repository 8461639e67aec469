package remote

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// pool keeps connections that nobody uses at the moment.
type pool struct {
	dialer *Dialer

	mu     sync.Mutex
	kept   map[Target][]*keptConn
	closed bool
}

// keptConn is one of them, with the timer that ends it.
type keptConn struct {
	*conn
	timer *time.Timer
}

func newPool(d *Dialer) *pool { return &pool{dialer: d, kept: map[Target][]*keptConn{}} }

// get returns a kept connection that lives, or a new one. Who gets it gives it back by put, or closes it.
func (p *pool) get(ctx context.Context, t Target) (c *conn, kept bool, err error) {
	for c := p.take(t); c != nil; c = p.take(t) {
		if c.alive() {
			return c, true, nil
		}
	}
	c, err = p.dialer.dial(ctx, t)
	return c, false, err
}

func (p *pool) take(t Target) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.kept[t]
	if len(list) == 0 {
		return nil
	}
	k := list[len(list)-1]
	p.kept[t] = list[:len(list)-1]
	k.timer.Stop()
	return k.conn
}

// put keeps a connection for Limits.Kept.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.dialer.Limits.Kept <= 0 || !c.alive() {
		_ = c.close() // nobody waits for it
		return
	}
	k := &keptConn{conn: c}
	k.timer = time.AfterFunc(p.dialer.Limits.Kept, func() { p.drop(k) })
	p.kept[c.target] = append(p.kept[c.target], k)
}

// drop ends a connection whose time is over, unless somebody took it meanwhile.
func (p *pool) drop(k *keptConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.kept[k.target]
	i := slices.Index(list, k)
	if i < 0 {
		return
	}
	p.kept[k.target] = slices.Delete(list, i, i+1)
	_ = k.close() // nobody waits for it
}

// close ends all kept connections, and keeps none any more.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, list := range p.kept {
		for _, k := range list {
			k.timer.Stop()
			if err := k.close(); err != nil && k.alive() {
				errs = append(errs, err)
			}
		}
	}
	p.kept = map[Target][]*keptConn{}
	return errors.Join(errs...)
}
