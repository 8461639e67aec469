package leader

import "time"

// reading is what the clocks of this computer showed at one moment.
type reading struct {
	// wall is the clock that is set by others.
	wall time.Time
	// running goes on while the process is stopped, and on Linux stands still while the computer is suspended
	// (clock_gettime(2), CLOCK_MONOTONIC). Boot counts suspended time as well (CLOCK_BOOTTIME); it is 0 where there is
	// no such clock.
	running, boot time.Duration
}

// newClockReader returns what reads the clocks.
func newClockReader() func() reading {
	begun := time.Now()
	return func() reading {
		now := time.Now()
		// Round drops the monotonic clock
		return reading{wall: now.Round(0), running: now.Sub(begun), boot: sinceBoot()}
	}
}

// ageSince returns how long ago an earlier reading was, by the clock that has gone furthest. The wall clock does not
// count.
func (r reading) ageSince(earlier reading) time.Duration {
	return max(r.running-earlier.running, r.boot-earlier.boot)
}

// wallClockJumped reports whether the wall clock has not gone as far as the others since an earlier reading: it was
// set, or the others stood still, as they may in a virtual machine that was paused.
func (r reading) wallClockJumped(earlier reading) bool {
	return (r.wall.Sub(earlier.wall) - r.ageSince(earlier)).Abs() > clockSlack
}
