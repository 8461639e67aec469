package jointest_test

import (
	"maps"
	"path/filepath"
	"testing"
	"time"

	"wmco/internal/test/faults"
)

// TestJoinsAndRemovalsWhenEtcdIsRestored to before them: a host that the cluster does not know any more joins again, and a removal that is asked for
// again is made. Other hosts notice nothing.
func TestJoinsAndRemovalsWhenEtcdIsRestored(t *testing.T) {
	if !faults.Whole() {
		t.Skip("etcd is restored with WMCO_FAULTS=all")
	}
	w := newWorld(t)
	stays := w.machine("instance-stays", "192.0.2.140")
	w.instances("192.0.2.140")
	w.operate()
	w.allJoin([]string{"instance-stays"})
	good := stays.Starts()
	const name, address = "instance-joined", "192.0.2.142"
	m := w.machine(name, address)
	w.addEntry(address)
	saved := w.save()
	w.allJoin([]string{name})
	took := w.restore(saved)
	if w.hasNode(name) {
		t.Fatal("it was saved too late")
	}
	t.Logf("a join: joined again %.1f s after the restore", took(func() bool { return w.joined(name) }))
	if starts := m.Starts()["kubelet"]; starts != 2*good["kubelet"] {
		t.Errorf("the kubelet was started %d times, and %d times in one join", starts, good["kubelet"])
	}

	gone := func() bool { return !w.hasNode(name) && !w.pinned(address) }
	saved = w.save()
	w.removeEntry(address)
	eventually(t, "the removal", gone)
	took = w.restore(saved)
	if !w.hasNode(name) {
		t.Error("the Node is not there although it was restored")
	}
	w.removeEntry(address) // the entry is back as well
	t.Logf("a removal: removed again %.1f s after the restore", took(gone))
	m.isEmpty(t)

	took = w.restore(saved)
	must(t, w.Delete(t.Context(), w.node(name)))
	t.Logf("a removal that is not wanted any more: joined again %.1f s after the restore", took(func() bool { return w.joined(name) }))
	if !w.joined("instance-stays") || !maps.Equal(stays.Starts(), good) {
		t.Errorf("the host that stays has started services %v, before %v", stays.Starts(), good)
	}
}

func (w *world) save() string {
	w.t.Helper()
	folder := filepath.Join(w.t.TempDir(), "etcd")
	must(w.t, server.ControlPlane(w.t).Save(folder))
	return folder
}

// restore returns when the API server answers again. What it returns waits for something, and returns how many seconds after that it was.
func (w *world) restore(saved string) (took func(done func() bool) float64) {
	w.t.Helper()
	must(w.t, server.ControlPlane(w.t).Restore(saved))
	back := time.Now()
	return func(done func() bool) float64 {
		w.t.Helper()
		eventually(w.t, "what follows a restore", done)
		return time.Since(back).Seconds()
	}
}
