package base

import (
	"runtime/debug"
	"testing"
)

// TestGarbageIsCollectedEarlier, unless the environment of the process says when.
func TestGarbageIsCollectedEarlier(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for _, c := range []struct {
		environment string
		want        int
	}{{"", garbagePercent}, {"70", 100}} {
		t.Setenv("GOGC", c.environment)
		debug.SetGCPercent(100)
		LimitGarbage()
		if got := debug.SetGCPercent(100); got != c.want {
			t.Errorf("GOGC=%s: %d percent, want %d", c.environment, got, c.want)
		}
	}
}
