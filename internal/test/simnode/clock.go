package simnode

import (
	"sync"
	"time"
)

// clock is that of a machine, and of the engine on it.
type clock struct {
	// began is when the machine was made, since its boot and by the system; faster is how much faster the engine waits.
	began  time.Duration
	made   time.Time
	faster int
	mu     sync.Mutex
	skew   time.Duration
}

func newClock(faster int) *clock { return &clock{began: sinceBoot(), made: time.Now(), faster: faster} }

// Now implements applier.Clock.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.skew)
}

// SinceBoot implements applier.Clock. It begins with that of wmco-node over SSH, which finds the system's.
func (c *clock) SinceBoot() time.Duration {
	return c.began + time.Since(c.made)*time.Duration(c.faster)
}

// After implements applier.Clock.
func (c *clock) After(d time.Duration) <-chan time.Time {
	return time.After(d / time.Duration(c.faster))
}

func (c *clock) set(skew time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew = skew
}
