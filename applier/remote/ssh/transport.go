package ssh

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"wmco/applier/remote"
)

// Limits are how long each phase may take. Zero is no limit, except where noted. A command as a whole has
// the limit of its context (remote.Limits).
type Limits struct {
	// Dial is for the TCP connection.
	Dial time.Duration
	// Handshake is from the TCP connection to the end of the authentication: the server's banner, keys and answers.
	Handshake time.Duration
	// Channel is for the opening of a channel on a connection, the start of a command in it, and each answer over SFTP.
	Channel time.Duration
	// Silence is for a command that neither reads nor prints a byte.
	Silence time.Duration
	// KeepAlive is how often the server is asked for a sign of life; after Missed without one the connection is dead.
	// Zero never asks.
	KeepAlive time.Duration
	Missed    int
	// Kept is how long an unused connection is kept. Zero keeps none.
	Kept time.Duration
}

// DefaultLimits are for hosts anywhere in the world. A dead one is given up within a minute.
func DefaultLimits() Limits {
	return Limits{
		Dial: 15 * time.Second, Handshake: 30 * time.Second, Channel: 30 * time.Second, Silence: 15 * time.Minute,
		KeepAlive: 15 * time.Second, Missed: 3, Kept: 5 * time.Minute,
	}
}

// quietLimit is how long a connection may receive nothing.
func (l Limits) quietLimit() time.Duration { return l.KeepAlive * time.Duration(max(l.Missed, 1)) }

// Transport implements remote.Transport.
type Transport struct {
	dialer Dialer

	mu     sync.Mutex
	kept   map[remote.Target][]*keptConn
	closed bool
}

// keptConn is an unused connection, with the timer that ends it.
type keptConn struct {
	*conn
	timer *time.Timer
}

// NewTransport returns a transport that opens connections with the dialer.
func NewTransport(d Dialer) *Transport {
	return &Transport{dialer: d, kept: map[remote.Target][]*keptConn{}}
}

// Connect implements remote.Transport.
func (t *Transport) Connect(ctx context.Context, to remote.Target) error {
	if t.dialer.Limits.Kept <= 0 {
		return nil
	}
	c, _, err := t.takeOrDial(ctx, to)
	if err != nil {
		return err
	}
	t.keepConnection(c)
	return nil
}

// Run implements remote.Transport.
func (t *Transport) Run(ctx context.Context, to remote.Target, c remote.Command) error {
	s, err := t.startChannel(ctx, to, channelRequest{kind: "exec", what: c.Line, name: c.Name})
	if err != nil {
		return err
	}
	defer t.keepConnection(s.conn)
	if !s.accepted {
		_ = s.channel.Close() // nothing runs in it
		return &remote.CommandError{Target: to, Command: c.Name, Status: remote.NoStatus, Stderr: "the SSH server refuses to run commands"}
	}
	return s.runCommand(ctx, c)
}

// channelRequest asks for a command or a subsystem in a channel (RFC 4254, 6.5).
type channelRequest struct {
	kind, what string
	// name names it in errors.
	name string
}

// startChannel starts a request, on a kept connection if there is one. A kept connection that fails before the
// host has answered is replaced: it was dead.
func (t *Transport) startChannel(ctx context.Context, to remote.Target, r channelRequest) (*session, error) {
	for {
		c, kept, err := t.takeOrDial(ctx, to)
		if err != nil {
			return nil, err
		}
		s, err := c.requestChannel(ctx, r)
		if err == nil {
			return s, nil
		}
		_ = c.closeAtOnce()
		if !kept || ctx.Err() != nil {
			return nil, err
		}
	}
}

// takeOrDial returns a kept connection that is alive, or a new one. The caller puts it back.
func (t *Transport) takeOrDial(ctx context.Context, to remote.Target) (c *conn, kept bool, err error) {
	for c := t.takeKept(to); c != nil; c = t.takeKept(to) {
		if c.isAlive() {
			return c, true, nil
		}
	}
	c, err = t.dialer.dialHost(ctx, to)
	return c, false, err
}

func (t *Transport) takeKept(to remote.Target) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.kept[to]
	if len(list) == 0 {
		return nil
	}
	k := list[len(list)-1]
	t.kept[to] = list[:len(list)-1]
	k.timer.Stop()
	return k.conn
}

// keepConnection keeps a connection for Limits.Kept.
func (t *Transport) keepConnection(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.dialer.Limits.Kept <= 0 || !c.isAlive() {
		_ = c.closeAtOnce() // no caller waits for it
		return
	}
	k := &keptConn{conn: c}
	k.timer = time.AfterFunc(t.dialer.Limits.Kept, func() { t.dropExpired(k) })
	t.kept[c.target] = append(t.kept[c.target], k)
}

// dropExpired ends a connection that was not taken in time.
func (t *Transport) dropExpired(k *keptConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.kept[k.target]
	i := slices.Index(list, k)
	if i < 0 {
		return
	}
	t.kept[k.target] = slices.Delete(list, i, i+1)
	_ = k.closeAtOnce() // no caller waits for it
}

// Close implements remote.Transport. No connection is kept from then on.
func (t *Transport) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	var errs []error
	for _, list := range t.kept {
		for _, k := range list {
			k.timer.Stop()
			if err := k.closeAtOnce(); err != nil && k.isAlive() {
				errs = append(errs, err)
			}
		}
	}
	t.kept = map[remote.Target][]*keptConn{}
	return errors.Join(errs...)
}
