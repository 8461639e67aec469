package faults

import (
	"sync"
	"time"
)

const (
	// ahead and back are how far the clock is set with SkewedClock, in turns.
	ahead, back = time.Hour, 30 * time.Minute
	// setEvery is how often.
	setEvery = 2 * time.Second
)

// Now is the wall clock of the process that uses the network. With SkewedClock it differs from that of the computer. It has no monotonic reading,
// which a clock that was set would keep (pkg.go.dev/time, Monotonic Clocks): what subtracts such times from each other sees the clock being set.
func (n *Network) Now() time.Time {
	now := time.Now().Round(0)
	if !n.is(SkewedClock) {
		return now
	}
	begun, _ := n.begun.Load().(time.Time)
	times := int(time.Since(begun)/setEvery) + 1
	return now.Add(time.Duration((times+1)/2)*ahead - time.Duration(times/2)*back) //nolint:mnd // every second time
}

// Monotonic is a monotonic clock that tests move on. The zero value begins when it is first read.
type Monotonic struct {
	mu    sync.Mutex
	begun time.Time
	more  time.Duration
}

// Elapsed is the time since the clock began, and what was passed.
func (m *Monotonic) Elapsed() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.begun.IsZero() {
		m.begun = time.Now()
	}
	return time.Since(m.begun) + m.more
}

// Pass lets time pass.
func (m *Monotonic) Pass(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.more += d
}
