package hosttest

import (
	"sync"
	"time"
)

// Clock is an applier.Clock that never waits: After moves it forward.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock at the given time.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now implements applier.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After implements applier.Clock: it moves the clock by d and fires at once.
func (c *Clock) After(d time.Duration) <-chan time.Time {
	fired := make(chan time.Time, 1)
	fired <- c.Jump(d)
	return fired
}

// Jump moves the clock by d, which may be backwards, and returns the new time.
func (c *Clock) Jump(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}
