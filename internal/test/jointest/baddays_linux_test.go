package jointest_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"wmco/internal/test/faults"
	"wmco/internal/test/seed"
)

// faultLasts is how long the API server has a bad day, at most: a join or a removal that ends before that ends it.
const faultLasts = 15 * time.Second

// TestJoinsAndRemovalsWhileTheAPIServerHasBadDays: hosts join and leave, and work on a host is done as often as on a good day.
func TestJoinsAndRemovalsWhileTheAPIServerHasBadDays(t *testing.T) {
	w := newWorld(t)
	stays := w.machine("instance-stays", "192.0.2.140")
	w.instances("192.0.2.140")
	network := faults.New(seed.New(t).Uint64())
	options, err := w.settings().options(w.output())
	must(t, err)
	options.Config.Wrap(network.Wrap)
	options.Now = network.Now
	w.operateWith(options)
	w.allJoin([]string{"instance-stays"})
	good := stays.starts()
	for i, fault := range faults.OfJoins() {
		name, address := fmt.Sprintf("instance-%d", i), fmt.Sprintf("192.0.2.%d", 141+i)
		m := w.machine(name, address)

		network.Set(fault)
		w.addEntry(address)
		hits, took := w.through(network, "a join", func() bool { return w.joined(name) })
		t.Logf("%s: a join: %d requests were hit, joined %.1f s after the end", fault, hits, took.Seconds())
		if starts := m.starts(); !maps.Equal(starts, good) || m.Boots() != stays.Boots() {
			t.Errorf("%s: services were started %v, and %v on a good day; %d boots", fault, starts, good, m.Boots())
		}

		network.Set(fault)
		w.removeEntry(address)
		hits, took = w.through(network, "a removal", func() bool { return !w.hasNode(name) && !w.pinned(address) })
		t.Logf("%s: a removal: %d requests were hit, removed %.1f s after the end", fault, hits, took.Seconds())
		m.isEmpty(t)
	}
	if !w.joined("instance-stays") || !maps.Equal(stays.starts(), good) {
		t.Errorf("the host that stays has started services %v, before %v", stays.starts(), good)
	}
}

// through waits until something is done, ends the fault on the way, and returns how many requests it has hit, and how long it took after its
// end.
func (w *world) through(network *faults.Network, what string, done func() bool) (hits int64, after time.Duration) {
	w.t.Helper()
	for until := time.Now().Add(faultLasts); time.Now().Before(until) && !done(); {
		time.Sleep(100 * time.Millisecond) // the fault goes on
	}
	if hits = network.Set(faults.None); hits == 0 {
		w.t.Errorf("no request of %s was hit", what)
	}
	well := time.Now()
	eventually(w.t, what, done)
	return hits, time.Since(well)
}
