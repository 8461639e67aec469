package remote

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Transport reaches hosts. Its errors are types of this package, or those of the functions that it calls. It may be
// used by many goroutines at once.
type Transport interface {
	// Connect connects to a host, so that the next command finds a connection. It does nothing if the transport keeps
	// none.
	Connect(ctx context.Context, t Target) error
	// Run runs a command. An exit status other than 0 is a *CommandError.
	Run(ctx context.Context, t Target, c Command) error
	// Transfer calls do with the host's files. A host without file transfer is ErrNoSFTP.
	Transfer(ctx context.Context, t Target, do func(Files) error) error
	// Close ends the kept connections. Commands that are running go on.
	Close() error
}

// Command is a command to run on a host.
type Command struct {
	// Line is the command line, which every shell reads the same way.
	Line string
	// Name names the command in errors.
	Name string
	// Stdin writes what the command reads; nil for nothing. A command may end before it has read everything.
	Stdin func(context.Context, io.Writer) error
	// Stdout reads what the command prints.
	Stdout func(io.Reader) error
	// Waits is how long the command may wait for something, in silence, beside the transport's own limit.
	Waits time.Duration
}

// Limits are how long a client waits for hosts. Each must be above zero.
type Limits struct {
	// Question is for the commands facts, version and confirm.
	Question time.Duration
	// Compare is for observe and verify, which may read every file of a bundle.
	Compare time.Duration
	// Upload is for reading the agent back from a host and uploading it.
	Upload time.Duration
	// Apply is for a run of apply, beside the time that it may wait for another run and for its confirmation.
	Apply time.Duration
	// Idle and Turn are those of PlaceLimits.
	Idle, Turn time.Duration
}

// DefaultLimits are for hosts anywhere in the world: an upload of 30 MB may take half an hour.
func DefaultLimits() Limits {
	return Limits{
		Question: 2 * time.Minute, Compare: 30 * time.Minute, Upload: 30 * time.Minute, Apply: 2 * time.Hour,
		Idle: 30 * time.Second, Turn: 10 * time.Minute,
	}
}

// LimitError means that something took longer than it may.
type LimitError struct{ Text string }

func (e *LimitError) Error() string { return e.Text }

// withLimit limits the time of the work with the context. The cause of its end is a *LimitError.
func withLimit(ctx context.Context, limit time.Duration, what string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, &LimitError{fmt.Sprintf("%s took longer than %s", what, limit)})
}

// Client asks node agents. It may be used by many goroutines at once.
type Client struct {
	transport Transport
	program   Program
	// sum is the program's, once it is known.
	sum *atomic.Pointer[string]
	// leaves is true if hosts without the program stay without it.
	leaves bool
	// mayChange is asked before each act that changes a host; nil allows all.
	mayChange func(context.Context) error
	limits    Limits
	hosts     *knownHosts
}

// knownHosts are what a client knows of hosts.
type knownHosts struct {
	mu  sync.Mutex
	all map[Target]*knownHost
}

// knownHost is what a client knows of one host.
type knownHost struct {
	// placing is held while the agent on the host is read back or uploaded; it has room for one.
	placing chan struct{}
	// placed counts how often that ended well.
	placed atomic.Int64
	// proven reports whether the agent on the host has answered this client, and so found its own file right.
	proven atomic.Bool
	// doubtful reports whether the agent on the host did not come to an end before it was proven.
	doubtful atomic.Bool
	// text reports whether the host needs stdin as text.
	text atomic.Bool
}

func (k *knownHosts) knownHostOf(t Target) *knownHost {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all[t] == nil {
		k.all[t] = &knownHost{placing: make(chan struct{}, 1)}
	}
	return k.all[t]
}

// NewClient returns a client that uploads the program to hosts that lack it. Close closes the transport.
func NewClient(t Transport, p Program, l Limits) *Client {
	c := &Client{transport: t, program: p, sum: &atomic.Pointer[string]{}, limits: l, hosts: &knownHosts{all: map[Target]*knownHost{}}}
	switch {
	case p.Sum != "":
		c.sum.Store(&p.Sum)
	case p.Open != nil:
		go func() {
			if sum, err := p.computeChecksum(); err == nil { // without it, agents take longer
				c.sum.Store(&sum)
			}
		}()
	}
	return c
}

// WithTransport returns a client that uses another transport, and knows of hosts what this one does.
func (c *Client) WithTransport(t Transport) *Client {
	other := *c
	other.transport = t
	return &other
}

// Observing returns a client that copies nothing to hosts, as one of NewObserver, and begins to know them again: for
// targets that are asked once. Nothing of them is kept when it is dropped.
func (c *Client) Observing() *Client {
	other := *c
	other.leaves, other.hosts = true, &knownHosts{all: map[Target]*knownHost{}}
	return &other
}

// GuardedBy returns a client that asks before each act that changes a host (an upload, apply, stage, repair, cleanup)
// whether it may. What was begun goes on, and is confirmed. The client knows of hosts what this one does.
func (c *Client) GuardedBy(mayChange func(context.Context) error) *Client {
	other := *c
	other.mayChange = mayChange
	return &other
}

// NewObserver returns a client that copies nothing to hosts: a question to one that lacks the program is a
// *NotInstalledError. Close closes the transport.
func NewObserver(t Transport, p Program, l Limits) *Client {
	c := NewClient(t, p, l)
	c.leaves = true
	return c
}

// AgentFor returns the agent of a host, without connecting to it.
func (c *Client) AgentFor(t Target) *Agent {
	return &Agent{client: c, target: t, host: c.hosts.knownHostOf(t)}
}

// Close closes the transport.
func (c *Client) Close() error { return c.transport.Close() }

// ForEachHost works on every host, on so many at once (Places). The errors are in the order of the targets; one host's
// error does not stop the others.
func (c *Client) ForEachHost(ctx context.Context, targets []Target, parallel int, work func(context.Context, *Agent) error) []error {
	places := NewPlaces(c.limits.PlacesFor(parallel))
	errs := make([]error, len(targets))
	var all sync.WaitGroup
	for i, t := range targets {
		all.Go(func() { errs[i] = c.inTurn(ctx, t, places, work) })
	}
	all.Wait()
	return errs
}

// inTurn works on one host when it may.
func (c *Client) inTurn(ctx context.Context, t Target, places *Places, work func(context.Context, *Agent) error) error {
	ctx, turn := places.WithTurn(ctx, "", nil)
	defer turn.End()
	if err := beginTurn(ctx); err != nil {
		return err
	}
	if err := c.transport.Connect(ctx, t); err != nil {
		return err
	}
	return work(ctx, c.AgentFor(t))
}
