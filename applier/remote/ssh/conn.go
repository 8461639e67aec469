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

// conn is an authenticated connection, for one command at a time. It opens the channel for the next command in advance,
// which saves that command a round trip.
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
		go c.sendKeepAlives(limits.KeepAlive)
	}
	c.prepareChannel()
	return c
}

// sendKeepAlives asks for signs of life. Any answer of the server resets the deadline of the wire.
func (c *conn) sendKeepAlives(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-c.dead:
			return
		case <-tick.C:
			if c.awaitReply() != nil {
				return
			}
		}
	}
}

// awaitReply waits for a sign of life.
func (c *conn) awaitReply() error {
	_, _, err := c.transport.SendRequest("keepalive@openssh.com", true, nil)
	return err
}

// prepareChannel opens the channel for the next command.
func (c *conn) prepareChannel() {
	next := make(chan opened, 1)
	c.next = next
	go func() { next <- c.openChannelNow() }()
}

// openChannelNow opens a channel. It also waits for the end of the connection: OpenChannel would wait forever if the
// connection ends between two of its steps (golang.org/x/crypto/ssh, mux.loop drops the channels it knows, then
// closes).
func (c *conn) openChannelNow() opened {
	done := make(chan opened, 1)
	go func() {
		channel, requests, err := c.transport.OpenChannel("session", nil)
		s := &session{conn: c, channel: channel, end: make(chan ending, 1)}
		if err == nil {
			// At once: the connection reads nothing else, not even that it has ended, while more than sixteen requests
			// wait to be taken (golang.org/x/crypto/ssh, channel.handlePacket).
			go func() { s.end <- readEnding(requests) }()
		}
		done <- opened{s, err}
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
		return opened{err: c.lostReason()}
	}
}

// openChannel returns a channel for one command. A server may allow only one at once, and refuse the one that was
// prepared while another was in use; then open asks again.
func (c *conn) openChannel() (*session, error) {
	o := <-c.next
	if o.err != nil {
		o = c.openChannelNow()
	}
	c.prepareChannel()
	if o.err != nil {
		return nil, &remote.UnreachableError{Target: c.target, Phase: remote.PhaseChannel, Err: o.err}
	}
	return o.session, nil
}

// requestChannel opens a channel and requests something in it, within Limits.Channel.
func (c *conn) requestChannel(ctx context.Context, r channelRequest) (*session, error) {
	ctx, w := c.watchSilence(ctx, c.limits.Channel, "no command was started")
	defer w.stop()
	s, err := c.openChannel()
	if err != nil {
		return nil, unlessCanceled(ctx, err)
	}
	s.accepted, err = s.channel.SendRequest(r.kind, true, ssh.Marshal(struct{ What string }{r.what}))
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return s, c.interruptedError(r.name, err)
}

// isAlive reports whether the connection has not ended, as far as is known.
func (c *conn) isAlive() bool {
	select {
	case <-c.dead:
		return false
	default:
		return !c.closed.Load()
	}
}

// closeAtOnce ends the connection at once.
func (c *conn) closeAtOnce() error {
	c.closed.Store(true)
	return c.transport.Close()
}

// lostReason returns why the connection ended, once it has.
func (c *conn) lostReason() error {
	select {
	case <-c.dead:
		return c.err
	case <-time.After(time.Second):
		return errors.New("the channel was closed")
	}
}

// interruptedError is the error of a command that was not finished; nil if err is nil.
func (c *conn) interruptedError(name string, err error) error {
	if err == nil {
		return nil
	}
	return &remote.InterruptedError{Target: c.target, Command: name, Err: err}
}

// watchSilence ends the connection when the context ends or nothing was heard for so long. The cause of the returned
// context is why.
func (c *conn) watchSilence(ctx context.Context, limit time.Duration, what string) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := context.AfterFunc(ctx, func() { _ = c.closeAtOnce() })
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

// watchCommand is watchSilence for a command, which may wait for something beside Limits.Silence.
func (c *conn) watchCommand(ctx context.Context, waits time.Duration) (context.Context, *watch) {
	limit := c.limits.Silence
	if limit > 0 {
		limit += waits
	}
	return c.watchSilence(ctx, limit, "nothing was sent or received")
}

// watchAnswers is watchSilence for SFTP: each answer has the limit of opening a channel.
func (c *conn) watchAnswers(ctx context.Context) (context.Context, *watch) {
	return c.watchSilence(ctx, c.limits.Channel, "no file transfer was answered")
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
