package faults

import (
	"testing"
	"time"
)

// TestTheClockIsSet: an hour ahead, half an hour back, an hour ahead, and right again. The times have no monotonic reading.
func TestTheClockIsSet(t *testing.T) {
	n := New(1)
	by := func() time.Duration { return time.Until(n.Now()).Round(time.Minute) }
	if got := by(); got != 0 || n.Hits() != 0 {
		t.Errorf("without a fault it is %s ahead, %d times", got, n.Hits())
	}
	n.Set(SkewedClock)
	for times, want := range []time.Duration{time.Hour, 30 * time.Minute, 90 * time.Minute, time.Hour} {
		n.begun.Store(time.Now().Add(-time.Duration(times) * setEvery))
		if got := by(); got != want || n.Hits() != 1 {
			t.Errorf("after it was set %d times, it is %s ahead, %d hits", times+1, got, n.Hits())
		}
	}
	n.Set(None)
	if got := by(); got != 0 {
		t.Errorf("it is %s ahead in the end", got)
	}
	if now := n.Now(); now != now.Round(0) {
		t.Error("it has a monotonic reading")
	}
}

func TestMonotonic(t *testing.T) {
	var m Monotonic
	before := m.Elapsed()
	m.Pass(time.Hour)
	if after := m.Elapsed(); before > time.Minute || after < before+time.Hour {
		t.Errorf("%s, then %s", before, after)
	}
}
