package ssh

import (
	"context"
	"net"
	"sync"
	"time"
)

// deadlines dial connections whose deadlines do not count before begin is called, so that a busy computer reaches none while nothing is wrong. Then each
// is soon.
type deadlines struct {
	mu    sync.Mutex
	begun bool
	conns []*deadlineConn
}

func (d *deadlines) dial(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &deadlineConn{Conn: raw, of: d}
	d.conns = append(d.conns, c)
	return c, nil
}

// begin has the deadlines come soon.
func (d *deadlines) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun = true
	for _, c := range d.conns {
		_ = c.Conn.SetReadDeadline(soon(c.read)) // it may be closed
	}
}

// deadlineConn is a connection of deadlines.
type deadlineConn struct {
	net.Conn
	of *deadlines
	// read is the last deadline that was set.
	read time.Time
}

// SetReadDeadline implements net.Conn.
func (c *deadlineConn) SetReadDeadline(at time.Time) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.read = at
	if !c.of.begun {
		return nil
	}
	return c.Conn.SetReadDeadline(soon(at))
}

// SetDeadline implements net.Conn.
func (c *deadlineConn) SetDeadline(at time.Time) error { return c.SetReadDeadline(at) }

// soon returns a deadline in half a second in place of a later one. None stays none.
func soon(at time.Time) time.Time {
	if first := time.Now().Add(500 * time.Millisecond); at.After(first) {
		return first
	}
	return at
}
