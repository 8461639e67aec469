package simnode

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is the clock of the system that cannot be set, as in cmd/wmco-node: a simulated host has booted with it.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
