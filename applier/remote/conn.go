package remote

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// conn is an authenticated connection. It opens the channel for the next command before anyone asks for it, which saves
// each command a round trip.
type conn struct {
	target    Target
	transport ssh.Conn
	limits    Limits
	// dead is closed when the connection has ended; err is why.
	dead chan struct{}
	err  error
	// closed tells that we ended it.
	closed atomic.Bool

	mu   sync.Mutex
	next chan opened

	// The rest is for the one who has the connection: answers counts the commands that took stdin as it is and answered, and
	// session runs them if there is one.
	answers int
	session *serving
}

// opened is a channel that no command has used yet.
type opened struct {
	channel  ssh.Channel
	requests <-chan *ssh.Request
	err      error
}

const sessionChannel = "session"

func newConn(t Target, transport ssh.Conn, limits Limits) *conn {
	c := &conn{target: t, transport: transport, limits: limits, dead: make(chan struct{})}
	go func() {
		c.err = transport.Wait()
		close(c.dead)
	}()
	if limits.KeepAlive > 0 {
		go c.keepAlive(limits.KeepAlive)
	}
	c.prepare()
	return c
}

// keepAlive asks for a sign of life. Whatever the server answers makes the wire go on; without an answer it ends.
func (c *conn) keepAlive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-c.dead:
			return
		case <-tick.C:
			if c.ask() != nil {
				return
			}
		}
	}
}

// ask waits for a sign of life.
func (c *conn) ask() error {
	_, _, err := c.transport.SendRequest("keepalive@openssh.com", true, nil)
	return err
}

// prepare opens the channel for the next command.
func (c *conn) prepare() {
	next := make(chan opened, 1)
	c.mu.Lock()
	c.next = next
	c.mu.Unlock()
	go func() { next <- c.newChannel() }()
}

// newChannel opens a channel. It waits for the end of the connection as well: OpenChannel would wait for ever where the
// connection ends between two of its steps (golang.org/x/crypto/ssh, mux.loop drops the channels it knows, then closes).
func (c *conn) newChannel() opened {
	come := make(chan opened, 1)
	go func() {
		channel, requests, err := c.transport.OpenChannel(sessionChannel, nil)
		come <- opened{channel: channel, requests: requests, err: err}
	}()
	select {
	case o := <-come:
		return o
	case <-c.dead:
	}
	select {
	case o := <-come:
		return o
	case <-time.After(time.Second):
		return opened{err: c.lost()}
	}
}

// channel returns a channel for one command. A server may allow fewer than two at once; then the one that was prepared is
// refused, and it is asked again now.
func (c *conn) channel() (opened, error) {
	c.mu.Lock()
	next := c.next
	c.next = nil
	c.mu.Unlock()
	var o opened
	if next != nil {
		o = <-next
	}
	if next == nil || o.err != nil {
		o = c.newChannel()
	}
	if o.err != nil {
		return o, &UnreachableError{Target: c.target, Phase: PhaseChannel, Err: o.err}
	}
	c.prepare()
	return o, nil
}

// open returns a channel for one command, beside which there is no session. Without one the connection is of no use.
func (c *conn) open(ctx context.Context) (opened, error) {
	release := c.guard(ctx)
	c.hangUp()
	o, err := c.channel()
	release()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = c.close()
	}
	return o, err
}

// alive tells whether the connection has not ended as far as we know.
func (c *conn) alive() bool {
	select {
	case <-c.dead:
		return false
	default:
		return !c.closed.Load()
	}
}

// close ends the connection at once.
func (c *conn) close() error {
	c.closed.Store(true)
	return c.transport.Close()
}

// guard closes the connection when the context ends, until release.
func (c *conn) guard(ctx context.Context) (release func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.close() })
}

// lost is why the connection ended, once it has.
func (c *conn) lost() error {
	select {
	case <-c.dead:
		return c.err
	case <-time.After(time.Second):
		return errors.New("the channel was closed")
	}
}
