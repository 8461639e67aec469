//go:build !linux && !windows

package main

import "time"

// sinceBoot is the time of day: simulated hosts are for Linux.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }
