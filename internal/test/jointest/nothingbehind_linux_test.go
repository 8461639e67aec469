package jointest_test

import (
	"fmt"
	"testing"

	"wmco/internal/test/testenv"
)

// someBytes is the growth of the heap that is no leak of joins and removals.
const someBytes = 8 << 20

// TestJoinsAndRemovalsLeaveNothingBehind: instances join and are removed again and again, and the operator costs what it did before.
func TestJoinsAndRemovalsLeaveNothingBehind(t *testing.T) {
	const atOnce = 4
	rounds := max(number(t, "WMCO_JOINS_AND_REMOVALS", 8)/atOnce, 2)
	w := newWorld(t)
	var names []string
	for i := range atOnce {
		names = append(names, fmt.Sprintf("instance-%d", i))
		w.machine(names[i], fmt.Sprintf("192.0.2.%d", 71+i))
	}
	w.machine("instance-stays", "192.0.2.70")
	w.instances("192.0.2.70")
	o := w.process(w.settings())
	w.allJoin([]string{"instance-stays"})
	var first usage
	for round := range rounds {
		for i := range names {
			w.addEntry(fmt.Sprintf("192.0.2.%d", 71+i))
		}
		w.allJoin(names)
		for i := range names {
			w.removeEntry(fmt.Sprintf("192.0.2.%d", 71+i))
		}
		for i, name := range names {
			eventually(t, "the end of Node "+name, func() bool { return !w.hasNode(name) && !w.pinned(fmt.Sprintf("192.0.2.%d", 71+i)) })
		}
		u := o.usage()
		t.Logf("after %3d joins and removals: %3d goroutines, heap %5.1f MiB, resident %5.1f MiB", (round+1)*atOnce, u.Goroutines, float64(u.Heap)/(1<<20), float64(u.Resident)/(1<<20))
		if round == 0 {
			first = u
		}
	}
	// What is left by each join or removal stays. Work that is still under way, and connections that are kept for a while, end.
	var last usage
	settled := func() bool {
		last = o.usage()
		return len(last.grown(first, atOnce)) == 0 && last.Heap <= first.Heap+someBytes
	}
	if err := testenv.Eventually(t.Context(), "the goroutines and the heap of before", settled); err != nil {
		t.Errorf("%v: goroutines %v, heap %d bytes, after the first round %d", err, last.grown(first, atOnce), last.Heap, first.Heap)
	}
	if n := len(w.layers()); n > 2 {
		t.Errorf("%d Secrets with layers are left for one node", n)
	}
	o.stop()
}
