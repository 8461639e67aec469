package sshhost

import (
	"sync"
)

// Client reaches machines. It is for use by many at once.
type Client struct {
	program Program
	pool    *pool

	mu       sync.Mutex
	texts    map[Target]bool
	holdings map[Target]holding
	// alone are machines whose program runs no sessions.
	alone map[Target]bool
}

// NewClient uses the dialer's connections, and puts the program onto machines that lack it. Close ends the connections.
func NewClient(d Dialer, p Program) *Client {
	return &Client{program: p, pool: newPool(&d), texts: map[Target]bool{}, holdings: map[Target]holding{}, alone: map[Target]bool{}}
}

// Machine is the machine at the target. Nothing is sent to it yet.
func (c *Client) Machine(t Target) *Machine { return &Machine{client: c, target: t} }

// Close ends all connections that are kept. What runs goes on to its end.
func (c *Client) Close() error { return c.pool.close() }

// text tells whether the machine has to be sent text.
func (c *Client) text(t Target) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.texts[t]
}

func (c *Client) needsText(t Target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts[t] = true
}

// isAlone tells whether each command has to run in a process of its own on the machine.
func (c *Client) isAlone(t Target) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.alone[t]
}

func (c *Client) goesAlone(t Target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alone[t] = true
}
