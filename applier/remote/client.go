package remote

import (
	"context"
	"io"
	"sync"
)

// Transport reaches hosts. Its errors are types of this package, or those of the functions that it calls. It may be used by many
// goroutines at once.
type Transport interface {
	// Connect connects to a host, so that the next command finds a connection. It does nothing if the transport keeps none.
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
}

// Client asks node agents. It may be used by many goroutines at once.
type Client struct {
	transport Transport
	program   Program
	// leaves says that hosts without the program stay without it.
	leaves bool
	// text holds the targets that need stdin as text.
	text sync.Map
}

// NewClient returns a client that uploads the program to hosts that lack it. Close closes the transport.
func NewClient(t Transport, p Program) *Client { return &Client{transport: t, program: p} }

// NewObserver returns a client that copies nothing to hosts: a question to one that lacks the program is a
// *NotInstalledError. Close closes the transport.
func NewObserver(t Transport, p Program) *Client {
	return &Client{transport: t, program: p, leaves: true}
}

// Agent returns the agent of a host, without connecting to it.
func (c *Client) Agent(t Target) *Agent { return &Agent{client: c, target: t} }

// Close closes the transport.
func (c *Client) Close() error { return c.transport.Close() }

// More hosts are connected to at once than are worked on, so that one that does not answer delays no other.
const (
	connectFactor = 4
	minConnects   = 64
)

// Each works on every host, on so many at once. The errors are in the order of the targets; one host's error does not stop the
// others.
func (c *Client) Each(ctx context.Context, targets []Target, parallel int, work func(context.Context, *Agent) error) []error {
	parallel = max(parallel, 1)
	connects := make(chan struct{}, max(connectFactor*parallel, minConnects))
	works := make(chan struct{}, parallel)
	errs := make([]error, len(targets))
	var all sync.WaitGroup
	for i, t := range targets {
		all.Go(func() {
			errs[i] = inTurn(ctx, connects, func() error {
				if err := c.transport.Connect(ctx, t); err != nil {
					return err
				}
				return inTurn(ctx, works, func() error { return work(ctx, c.Agent(t)) })
			})
		})
	}
	all.Wait()
	return errs
}

// inTurn waits for a free slot and calls do.
func inTurn(ctx context.Context, slots chan struct{}, do func() error) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case slots <- struct{}{}:
	}
	defer func() { <-slots }()
	return do()
}
