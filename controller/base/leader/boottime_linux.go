package leader

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot returns the time since the computer was started, with that in which it was suspended.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0 // Linux has it since 2.6.39
	}
	return time.Duration(t.Nano())
}
