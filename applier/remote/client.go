package remote

import (
	"sync"

	"wmco/bundle"
)

// Client reaches machines. It is for use by many at once.
type Client struct {
	program Program
	pool    *pool

	mu       sync.Mutex
	memories map[Target]memory
}

// memory is what was learned of a machine. Without it the same is learned again.
type memory struct {
	// text: it has to be sent text. alone: its program runs no sessions.
	text, alone bool
	// bundle is the one that it was left with, contents are the sha256 of those that it keeps; empty if that is not known.
	bundle   bundle.Digest
	contents map[string]bool
}

// maxMemories is how many machines are remembered: some 6 kB each.
const maxMemories = 4096

// NewClient uses the dialer's connections, and puts the program onto machines that lack it. Close ends the connections.
func NewClient(d Dialer, p Program) *Client {
	return &Client{program: p, pool: newPool(&d), memories: map[Target]memory{}}
}

// Machine is the machine at the target. Nothing is sent to it yet.
func (c *Client) Machine(t Target) *Machine { return &Machine{client: c, target: t} }

// Close ends all connections that are kept. What runs goes on to its end.
func (c *Client) Close() error { return c.pool.close() }

// knows returns what was learned of the machine.
func (c *Client) knows(t Target) memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memories[t]
}

// learns changes it.
func (c *Client) learns(t Target, change func(*memory)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.memories[t]
	change(&m)
	for other := range c.memories {
		if len(c.memories) < maxMemories {
			break
		}
		delete(c.memories, other)
	}
	c.memories[t] = m
}
