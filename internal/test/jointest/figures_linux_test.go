package jointest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"wmco/applier/plan"
	"wmco/applier/records"
	"wmco/controller/csr/certificates"
	"wmco/internal/test/testenv"
)

// steps are what a machine passes on its way, in this order.
var steps = []struct {
	name   string
	passed func(m *joinedMachine, c seen) bool
}{
	{"the node agent is uploaded", func(m *joinedMachine, _ seen) bool {
		starts, err := m.ssh.Starts()
		return err == nil && slices.ContainsFunc(starts, func(command string) bool {
			return strings.Contains(command, "wmco-node") && strings.Contains(command, "facts")
		})
	}},
	{"the first run begins", func(m *joinedMachine, c seen) bool { return m.phase(c.t) != "" || m.Text(records.FileLedger) != "" }},
	{"its kubelet runs", func(m *joinedMachine, _ seen) bool { return m.Status("kubelet") == plan.ServiceRunning }},
	{"its first certificate is requested", func(m *joinedMachine, c seen) bool { return c.requested[m.Name()] }},
	{"it has a Node", func(m *joinedMachine, c seen) bool { return c.nodes[m.Name()] != nil }},
	{"its Node is Ready", func(m *joinedMachine, c seen) bool { n := c.nodes[m.Name()]; return n != nil && isReady(n) }},
	{"it has joined", func(m *joinedMachine, c seen) bool { return isJoined(c.nodes[m.Name()]) }},
}

// seen is what the cluster has at a moment: Nodes by name, and the names in first requests. It is read once for all machines, because what the
// test asks takes the processors from what it measures.
type seen struct {
	t         *testing.T
	nodes     map[string]*corev1.Node
	requested map[string]bool
}

func (w *world) see() seen {
	w.t.Helper()
	c := seen{w.t, map[string]*corev1.Node{}, map[string]bool{}}
	var list corev1.NodeList
	must(w.t, w.List(w.t.Context(), &list))
	for i, n := range list.Items {
		c.nodes[n.Name] = &list.Items[i]
	}
	for _, csr := range w.requests() {
		if strings.HasPrefix(csr.Name, "node-csr-") {
			c.requested[certificates.NodeName(&csr)] = true
		}
	}
	return c
}

// watch returns when each machine has passed each step, after now: exact to the pauses of eventually, which are half a second.
func (w *world) watch(names []string) map[string][]time.Duration {
	w.t.Helper()
	begin := time.Now()
	passed := map[string][]time.Duration{}
	eventually(w.t, fmt.Sprintf("%d machines", len(names)), func() bool {
		done, c := true, w.see()
		for _, name := range names {
			for len(passed[name]) < len(steps) && steps[len(passed[name])].passed(w.machines[name], c) {
				passed[name] = append(passed[name], time.Since(begin))
			}
			done = done && len(passed[name]) == len(steps)
		}
		return done
	})
	return passed
}

// TestFigures shows how long it takes from a Machine's address to a node that accepts pods, for one and for many at once, and what the
// steps cost.
func TestFigures(t *testing.T) {
	for _, n := range []int{1, number(t, "WMCO_JOINS", 4)} {
		t.Run(fmt.Sprintf("%d at once", n), func(t *testing.T) {
			w := newWorld(t)
			w.operate()
			names := w.many(n)
			passed := w.watch(names)
			for i, step := range steps {
				var all []time.Duration
				for _, name := range names {
					all = append(all, passed[name][i])
				}
				slices.Sort(all)
				t.Logf("%2d at once: %-36s after %5.1f s, the last one after %5.1f s", n, step.name, all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
			}
		})
	}
}

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
