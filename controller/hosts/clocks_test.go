package hosts

import (
	"fmt"
	"testing"
	"time"

	"wmco/applier/protocol"
)

// TestClocksOfHosts: the time of the last event of a run shows by how much a clock differs, for people.
func TestClocksOfHosts(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	c := NewClocks(func() time.Time { return now })
	h := New(Options{}).NotingClocks(c)
	for address, by := range map[string]time.Duration{"192.0.2.1": -time.Hour, "192.0.2.2": 4 * time.Minute, "192.0.2.3": 90 * time.Minute} {
		c.noteEventTime(address, protocol.Event{Time: now.Add(-5 * time.Hour)})
		c.noteEventTime(address, protocol.Event{Time: now.Add(by)})
		c.noteEventTime(address, protocol.Event{}) // of this process, without a request
	}
	if got := fmt.Sprint(c.ClockSkews()); got != "[192.0.2.1 (1h0m behind) 192.0.2.3 (1h30m ahead)]" {
		t.Error(got)
	}
	h.ForgetAddress("192.0.2.3")
	if got := fmt.Sprint(c.ClockSkews()); got != "[192.0.2.1 (1h0m behind)]" {
		t.Error(got)
	}
}
