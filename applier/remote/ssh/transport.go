package ssh

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"wmco/applier/remote"
)

// Limits are how long each phase may take. Zero is no limit, except where it says otherwise. A command as a whole has the limit of
// its context (remote.Limits).
type Limits struct {
	// Dial is for the TCP connection.
	Dial time.Duration
	// Handshake is from the TCP connection to the end of the authentication: the server's banner, keys and answers.
	Handshake time.Duration
	// Channel is for the opening of a channel on a connection, the start of a command in it, and each answer over SFTP.
	Channel time.Duration
	// Silence is for a command that neither reads nor prints a byte.
	Silence time.Duration
	// KeepAlive is how often the server is asked for a sign of life; after Missed without one the connection is dead. Zero never
	// asks.
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

// quiet is how long a connection may receive nothing.
func (l Limits) quiet() time.Duration { return l.KeepAlive * time.Duration(max(l.Missed, 1)) }

// Transport implements remote.Transport.
type Transport struct {
	dialer Dialer

	mu     sync.Mutex
	kept   map[remote.Target][]*keptConn
	closed bool
}

// keptConn is a connection that nobody uses, with the timer that ends it.
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
	c, _, err := t.get(ctx, to)
	if err != nil {
		return err
	}
	t.put(c)
	return nil
}

// Run implements remote.Transport.
func (t *Transport) Run(ctx context.Context, to remote.Target, c remote.Command) error {
	s, err := t.start(ctx, to, channelRequest{kind: "exec", what: c.Line, name: c.Name})
	if err != nil {
		return err
	}
	defer t.put(s.conn)
	if !s.accepted {
		_ = s.channel.Close() // nothing runs in it
		return &remote.CommandError{Target: to, Command: c.Name, Status: remote.NoStatus, Stderr: "the SSH server refuses to run commands"}
	}
	return s.run(ctx, c)
}

// channelRequest asks for a command or a subsystem in a channel (RFC 4254, 6.5).
type channelRequest struct {
	kind, what string
	// name names it in errors.
	name string
}

// start begins what is requested, on a kept connection if there is one. A kept connection that fails before the host has answered is
// replaced: it was dead.
func (t *Transport) start(ctx context.Context, to remote.Target, r channelRequest) (*session, error) {
	for {
		c, kept, err := t.get(ctx, to)
		if err != nil {
			return nil, err
		}
		s, err := c.request(ctx, r)
		if err == nil {
			return s, nil
		}
		_ = c.close()
		if !kept || ctx.Err() != nil {
			return nil, err
		}
	}
}

// get returns a kept connection that is alive, or a new one. The caller puts it back.
func (t *Transport) get(ctx context.Context, to remote.Target) (c *conn, kept bool, err error) {
	for c := t.take(to); c != nil; c = t.take(to) {
		if c.alive() {
			return c, true, nil
		}
	}
	c, err = t.dialer.dial(ctx, to)
	return c, false, err
}

func (t *Transport) take(to remote.Target) *conn {
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

// put keeps a connection for Limits.Kept.
func (t *Transport) put(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.dialer.Limits.Kept <= 0 || !c.alive() {
		_ = c.close() // nobody waits for it
		return
	}
	k := &keptConn{conn: c}
	k.timer = time.AfterFunc(t.dialer.Limits.Kept, func() { t.drop(k) })
	t.kept[c.target] = append(t.kept[c.target], k)
}

// drop ends a connection that nobody took in time.
func (t *Transport) drop(k *keptConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.kept[k.target]
	i := slices.Index(list, k)
	if i < 0 {
		return
	}
	t.kept[k.target] = slices.Delete(list, i, i+1)
	_ = k.close() // nobody waits for it
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
			if err := k.close(); err != nil && k.alive() {
				errs = append(errs, err)
			}
		}
	}
	t.kept = map[remote.Target][]*keptConn{}
	return errors.Join(errs...)
}
