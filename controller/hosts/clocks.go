package hosts

import (
	"maps"
	"slices"
	"sync"
	"time"

	"wmco/applier/protocol"
	"wmco/controller/windowsnode/heartbeat"
)

// Clocks are by how much the clocks of hosts differed from ours when they were last changed over SSH, by address. They
// are for people: a kubelet whose clock is behind gets no certificate, and the cluster has no sign of it.
// Nothing is decided by them.
type Clocks struct {
	now func() time.Time

	mu  sync.Mutex
	all map[string]time.Duration
}

// NewClocks returns what knows no host. Now is the operator's clock.
func NewClocks(now func() time.Time) *Clocks {
	return &Clocks{now: now, all: map[string]time.Duration{}}
}

// noteEventTime notes the time of an event of a run on a host, which has just arrived.
func (c *Clocks) noteEventTime(address string, e protocol.Event) {
	if e.Time.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[address] = e.Time.Sub(c.now())
}

func (c *Clocks) forgetHost(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, address)
}

// ClockSkews returns the hosts whose clocks differ by more than heartbeat.Tolerance, by address.
func (c *Clocks) ClockSkews() []heartbeat.Skew {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []heartbeat.Skew
	for _, address := range slices.Sorted(maps.Keys(c.all)) {
		if by := c.all[address]; by.Abs() > heartbeat.Tolerance {
			list = append(list, heartbeat.Skew{Node: address, By: by})
		}
	}
	return list
}
