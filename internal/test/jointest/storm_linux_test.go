package jointest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/records"
	"wmco/controller/gather"
	"wmco/internal/test/seed"
)

// many starts machines, every other one that of a Machine, the rest instances, and returns their names. The objects are created last,
// all at once.
func (w *world) many(count int) []string {
	w.t.Helper()
	var names, instances []string
	addresses := map[string]string{}
	for i := range count {
		name, address := fmt.Sprintf("instance-%d", i), fmt.Sprintf("192.0.2.%d", 10+i)
		if i%2 == 0 {
			name = fmt.Sprintf("machine-%d", i)
			addresses[name] = address
		} else {
			instances = append(instances, address)
		}
		w.machine(name, address)
		names = append(names, name)
	}
	for _, name := range slices.Sorted(maps.Keys(addresses)) {
		w.machineObject(name, addresses[name])
	}
	w.instances(instances...)
	return names
}

// allJoin waits until all machines are complete.
func (w *world) allJoin(names []string) {
	w.t.Helper()
	for _, name := range names {
		eventually(w.t, "node "+name, func() bool { return w.joined(name) })
	}
}

func count(names []string, is func(name string) bool) int {
	return len(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !is(name) }))
}

// starts returns how often services were started for the operator. A kubelet without an API server ends, and the service control
// manager restarts it: those do not count.
func (m *joinedMachine) starts() map[string]int {
	// All have joined: no service is restarted between the two.
	recovered, starts := m.Recoveries(), m.Starts()
	for service, n := range recovered {
		starts[service] -= n
	}
	return starts
}

// configuredOnce checks that no service was started more often than on an undisturbed machine. After each run that was cut off, which are counted by
// machine, it may be started again: that run may not have noted yet that it has started it.
func (w *world) configuredOnce(undisturbed string, names []string, cut map[string]int) {
	w.t.Helper()
	want := w.machines[undisturbed].starts()
	for _, name := range names {
		got := w.machines[name].starts()
		for service, starts := range want {
			if got[service] > starts+cut[name] {
				w.t.Errorf("%s: service %s was started %d times after %d runs that were cut off, and %d times on %s", name, service, got[service], cut[name], starts, undisturbed)
			}
		}
		if boots := w.machines[name].Boots(); boots != w.machines[undisturbed].Boots() {
			w.t.Errorf("%s was booted %d times, %s %d times", name, boots, undisturbed, w.machines[undisturbed].Boots())
		}
	}
}

// stepsOfLife is how many steps an operator takes at the most before it is killed.
const stepsOfLife = 100

// TestTheOperatorIsKilledWhileMachinesJoin: the next one resumes the joins.
func TestTheOperatorIsKilledWhileMachinesJoin(t *testing.T) {
	w := newWorld(t)
	names := w.many(number(t, "WMCO_STORM_MACHINES", 20))
	kills := number(t, "WMCO_OPERATOR_KILLS", 10)
	random := seed.New(t)
	cut := map[string]int{}
	for i := range kills {
		s := w.settings()
		s.KilledAt = 1 + random.Int64N(stepsOfLife)
		w.process(s).killed(func() bool { return count(names, w.joined) == len(names) })
		for _, name := range names {
			if w.machines[name].phase(t) != "" {
				cut[name]++
			}
		}
		t.Logf("kill %d at step %d: of %d machines %d were begun, %d have Nodes, %d have joined", i+1, s.KilledAt, len(names),
			count(names, func(name string) bool { return len(w.machines[name].Starts()) > 0 }),
			count(names, func(name string) bool { return w.hasNode(name) }), count(names, w.joined))
	}
	w.process(w.settings())
	w.allJoin(names)
	// The last one joins alone.
	w.machine("machine-alone", "192.0.2.250")
	w.machineObject("machine-alone", "192.0.2.250")
	w.allJoin([]string{"machine-alone"})
	w.configuredOnce("machine-alone", names, cut)
	w.allJoin(names)
}

// phase is that of the run on a machine; empty if there is none.
func (m *joinedMachine) phase(t *testing.T) records.Phase {
	t.Helper()
	var journal struct {
		Phase records.Phase `json:"phase"`
	}
	if text := m.Text(records.FileJournal); text != "" {
		must(t, json.Unmarshal([]byte(text), &journal))
	}
	return journal.Phase
}

// TestARunThatWaitsForAKilledOperatorIsConfirmedByTheNextOne: nothing is rolled back, and nothing is done twice.
func TestARunThatWaitsForAKilledOperatorIsConfirmedByTheNextOne(t *testing.T) {
	w := newWorld(t)
	m := w.machine("instance-a", "192.0.2.11")
	w.instances("192.0.2.11")
	o := w.process(w.settings())
	eventually(t, "the run", func() bool { return m.phase(t) != "" })
	// No new connection can be opened: nothing is confirmed.
	must(t, w.at.put("192.0.2.11", nowhere))
	eventually(t, "the wait for the confirmation", func() bool { return m.phase(t) == records.PhaseConfirming })
	o.kill()
	must(t, w.at.put("192.0.2.11", m.ssh.address()))
	w.process(w.settings())
	w.allJoin([]string{"instance-a"})
	w.machine("machine-alone", "192.0.2.250")
	w.machineObject("machine-alone", "192.0.2.250")
	w.allJoin([]string{"machine-alone"})
	w.configuredOnce("machine-alone", []string{"instance-a"}, nil)
}

// holder returns who is the leader.
func (w *world) holder() string {
	w.t.Helper()
	var lease coordinationv1.Lease
	err := w.Get(w.t.Context(), client.ObjectKey{Namespace: gather.OperatorNamespace, Name: "windows-machine-config-operator"}, &lease)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// freeLease takes the Lease from an operator that was killed, or is frozen, as if it had lasted long enough.
func (w *world) freeLease() {
	w.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config-operator"}}
	must(w.t, w.Patch(w.t.Context(), lease, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":""}}`))))
}

// TestTheLeaderChangesWhileMachinesJoin: the leader is killed, and later the next one is told to end.
func TestTheLeaderChangesWhileMachinesJoin(t *testing.T) {
	w := newWorld(t)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config-operator"}}
	must(t, client.IgnoreNotFound(w.Delete(t.Context(), lease)))
	names := w.many(4)
	s := w.settings()
	s.Leader = true
	first := w.process(s)
	eventually(t, "a leader", func() bool { return w.holder() != "" })
	leader := w.holder()
	second := w.process(s)
	eventually(t, "the first Node", func() bool { return slices.ContainsFunc(names, func(name string) bool { return w.hasNode(name) }) })
	if got := w.holder(); got != leader {
		t.Fatalf("the leader is %s, not %s, although nobody has stopped that", got, leader)
	}
	first.kill()
	w.freeLease()
	eventually(t, "another leader", func() bool { return w.holder() != leader && w.holder() != "" })
	leader = w.holder()
	third := w.process(s)
	second.stop()
	eventually(t, "a third leader", func() bool { return w.holder() != leader && w.holder() != "" })
	w.allJoin(names)
	w.machine("machine-alone", "192.0.2.250")
	w.machineObject("machine-alone", "192.0.2.250")
	w.allJoin([]string{"machine-alone"})
	w.configuredOnce("machine-alone", names, nil)
	third.stop()
	if got := w.holder(); got != "" {
		t.Errorf("the leader is still %s after it has ended", got)
	}
}

// TestTheAPIServerRestartsWhileMachinesJoin: everybody loses it, the operator, the node agents and the kubelets.
func TestTheAPIServerRestartsWhileMachinesJoin(t *testing.T) {
	w := newWorld(t)
	names := w.many(4)
	w.operate()
	eventually(t, "the first Node", func() bool { return slices.ContainsFunc(names, func(name string) bool { return w.hasNode(name) }) })
	plane := server.ControlPlane(t)
	must(t, plane.StopAPIServer())
	must(t, plane.StartAPIServer())
	w.allJoin(names)
	w.machine("machine-alone", "192.0.2.250")
	w.machineObject("machine-alone", "192.0.2.250")
	w.allJoin([]string{"machine-alone"})
	w.configuredOnce("machine-alone", names, nil)
}
