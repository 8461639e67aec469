package simnode

import (
	"sync"
	"time"
)

// clock is that of a machine.
type clock struct {
	mu   sync.Mutex
	skew time.Duration
}

// Now implements applier.Clock.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.skew)
}

// SinceBoot implements applier.Clock. It is that of wmco-node over SSH, which finds the system's.
func (c *clock) SinceBoot() time.Duration { return sinceBoot() }

// After implements applier.Clock.
func (c *clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func (c *clock) set(skew time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew = skew
}
