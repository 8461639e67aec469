//go:build !linux

package leader

import "time"

// sinceBoot returns 0: operators run on Linux.
func sinceBoot() time.Duration { return 0 }
