package faults

import (
	"testing"
	"time"
)

// TestTheClockIsSet: an hour ahead, half an hour back, and right again. The times have no monotonic reading.
func TestTheClockIsSet(t *testing.T) {
	n := New(1)
	by := func() time.Duration { return time.Until(n.Now()).Round(time.Minute) }
	if got := by(); got != 0 || n.Hits() != 0 {
		t.Errorf("without a fault it is %s ahead, %d times", got, n.Hits())
	}
	n.Set(SkewedClock)
	if got := by(); got != 0 || n.Hits() != 1 {
		t.Errorf("it is %s ahead at first, %d times", got, n.Hits())
	}
	n.begun.Store(time.Now().Add(-setAfter))
	if got := by(); got != ahead {
		t.Errorf("it is %s ahead", got)
	}
	n.begun.Store(time.Now().Add(-setBackAfter))
	if got := by(); got != aheadLater {
		t.Errorf("it is %s ahead later", got)
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
