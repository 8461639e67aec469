package faults

import (
	"context"
	"testing"
	"testing/synctest"
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

// TestAClockGoesOn alone and as it is moved on, until the context ends.
func TestAClockGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		c := NewClock(ctx)
		begun := c.Now()
		c.Step(time.Hour)
		time.Sleep(time.Minute)
		synctest.Wait()
		if since := c.Since(begun); since != time.Hour+time.Minute {
			t.Errorf("it has gone on by %s", since)
		}
		stop()
		time.Sleep(time.Minute)
		if since := c.Since(begun); since != time.Hour+time.Minute {
			t.Errorf("it has gone on by %s, although it was stopped", since)
		}
	})
}
