package ssh

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"wmco/applier/remote"
)

// conn is an authenticated connection, for one command at a time. It opens the channel for the next command in advance, which saves
// that command a round trip.
type conn struct {
	target    remote.Target
	transport ssh.Conn
	limits    Limits
	// dead is closed when the connection has ended; err is why.
	dead chan struct{}
	err  error
	// closed is set when we ended it.
	closed atomic.Bool
	// next is the channel for the next command.
	next chan opened
}

// opened is a channel, or why there is none.
type opened struct {
	session *session
	err     error
}

func newConn(t remote.Target, transport ssh.Conn, limits Limits) *conn {
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

// keepAlive asks for signs of life. Any answer of the server resets the deadline of the wire.
func (c *conn) keepAlive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-c.dead:
			return
		case <-tick.C:
			if c.ping() != nil {
				return
			}
		}
	}
}

// ping waits for a sign of life.
func (c *conn) ping() error {
	_, _, err := c.transport.SendRequest("keepalive@openssh.com", true, nil)
	return err
}

// prepare opens the channel for the next command.
func (c *conn) prepare() {
	next := make(chan opened, 1)
	c.next = next
	go func() { next <- c.openNow() }()
}

// openNow opens a channel. It also waits for the end of the connection: OpenChannel would wait forever if the connection ends between
// two of its steps (golang.org/x/crypto/ssh, mux.loop drops the channels it knows, then closes).
func (c *conn) openNow() opened {
	done := make(chan opened, 1)
	go func() {
		channel, requests, err := c.transport.OpenChannel("session", nil)
		done <- opened{&session{conn: c, channel: channel, requests: requests}, err}
	}()
	select {
	case o := <-done:
		return o
	case <-c.dead:
	}
	select {
	case o := <-done:
		return o
	case <-time.After(time.Second):
		return opened{err: c.lost()}
	}
}

// open returns a channel for one command. A server may allow only one at once, and refuse the one that was prepared while
// another was in use; then open asks again.
func (c *conn) open() (*session, error) {
	o := <-c.next
	if o.err != nil {
		o = c.openNow()
	}
	c.prepare()
	if o.err != nil {
		return nil, &remote.UnreachableError{Target: c.target, Phase: remote.PhaseChannel, Err: o.err}
	}
	return o.session, nil
}

// request opens a channel and requests something in it, within Limits.Channel.
func (c *conn) request(ctx context.Context, r channelRequest) (*session, error) {
	ctx, w := c.watch(ctx, c.limits.Channel, "no command was started")
	defer w.stop()
	s, err := c.open()
	if err != nil {
		return nil, unlessCanceled(ctx, err)
	}
	s.accepted, err = s.channel.SendRequest(r.kind, true, ssh.Marshal(struct{ What string }{r.what}))
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return s, c.interrupted(r.name, err)
}

// alive reports whether the connection has not ended, as far as is known.
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

// lost returns why the connection ended, once it has.
func (c *conn) lost() error {
	select {
	case <-c.dead:
		return c.err
	case <-time.After(time.Second):
		return errors.New("the channel was closed")
	}
}

// interrupted is the error of a command that was not finished; nil if err is nil.
func (c *conn) interrupted(name string, err error) error {
	if err == nil {
		return nil
	}
	return &remote.InterruptedError{Target: c.target, Command: name, Err: err}
}

// watch ends the connection when the context ends or nothing was heard for so long. The cause of the returned context is why.
func (c *conn) watch(ctx context.Context, limit time.Duration, what string) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := context.AfterFunc(ctx, func() { _ = c.close() })
	if limit <= 0 {
		limit = noLimit
	}
	silent := time.AfterFunc(limit, func() { cancel(&remote.LimitError{Text: fmt.Sprintf("%s for %s", what, limit)}) })
	return ctx, &watch{
		heard: func() { silent.Reset(limit) },
		stop: func() {
			silent.Stop()
			release()
			cancel(nil)
		},
	}
}

// listen is watch for a command, which may wait for something beside Limits.Silence.
func (c *conn) listen(ctx context.Context, waits time.Duration) (context.Context, *watch) {
	limit := c.limits.Silence
	if limit > 0 {
		limit += waits
	}
	return c.watch(ctx, limit, "nothing was sent or received")
}

// answers is watch for SFTP: each answer has the limit of opening a channel.
func (c *conn) answers(ctx context.Context) (context.Context, *watch) {
	return c.watch(ctx, c.limits.Channel, "no file transfer was answered")
}

// noLimit is longer than any command.
const noLimit = 365 * 24 * time.Hour

// watch guards a connection while it is in use.
type watch struct {
	// heard resets the limit of silence.
	heard func()
	// stop ends the guard. The connection stays.
	stop func()
}
