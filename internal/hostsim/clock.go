package hostsim

import (
	"sync"
	"time"
)

// Clock is an applier.Clock that never waits: After moves it forward.
type Clock struct {
	mu  sync.Mutex
	now time.Time
	ran time.Duration
}

// NewClock returns a clock at the given time.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now implements applier.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// SinceBoot implements applier.Clock. It counts what Pass and After let pass.
func (c *Clock) SinceBoot() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ran
}

// Boot lets the time since the boot begin again.
func (c *Clock) Boot() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran = 0
}

// Pass lets time pass.
func (c *Clock) Pass(d time.Duration) time.Time {
	c.mu.Lock()
	c.ran += d
	c.mu.Unlock()
	return c.Jump(d)
}

// After implements applier.Clock: it lets d pass and fires at once.
func (c *Clock) After(d time.Duration) <-chan time.Time {
	fired := make(chan time.Time, 1)
	fired <- c.Pass(d)
	return fired
}

// Jump sets the clock by d, which may be backwards, and returns the new time.
func (c *Clock) Jump(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}
