//go:build !linux

package simnode

import "time"

// sinceBoot is not known here.
func sinceBoot() time.Duration { return 0 }
