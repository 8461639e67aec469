package fleettest

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle/published"
	"wmco/controller/windowsnode"
	"wmco/internal/test/faults"
	"wmco/internal/test/observer"
)

// TestRolloutsWhenEtcdIsRestored to a turn that has ended since, and to before a change that nodes have followed. No node stays cordoned, nothing boots
// again, and what was changed after the save is changed back.
func TestRolloutsWhenEtcdIsRestored(t *testing.T) {
	if !faults.Whole() {
		t.Skip("etcd is restored with WMCO_FAULTS=all")
	}
	f := newFleet(t)
	f.operate(t, nil)
	eventually(t, "five nodes that follow the cluster", func() bool { return f.isSettled(t) })
	f.rest(t)

	t.Run("into a turn", func(t *testing.T) {
		booting := f.machines[2]
		r := f.read(t)
		booting.StickOff(true) // so that the turn lasts
		loseFeature(t, booting)
		eventually(t, "a machine that is off in its turn", func() bool { return !booting.IsOn() })
		saved := f.save(t)
		booting.StickOff(false)
		must(t, booting.PowerOn())
		free := func() bool { n := f.node(t, booting.name); return observer.IsCurrent(*n) && !isKeptFree(n) }
		eventually(t, "the end of the turn", func() bool { return booting.Boots() > r.machines[booting.name].Boots && free() })
		took := f.restore(t, saved)
		if n := f.node(t, booting.name); !isKeptFree(n) {
			t.Fatalf("it was saved too late: %v", n.Annotations)
		}
		t.Logf("a turn that has ended: the node was given back %.1f s after the restore", took(free))
		f.rest(t)
		if n := booting.Boots() - r.machines[booting.name].Boots; n != 1 {
			t.Errorf("%s has booted %d times", booting.name, n)
		}
	})
	t.Run("before a change", func(t *testing.T) {
		saved, r := f.save(t), f.read(t)
		f.put(t, `{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: cluster}, spec: {}, status: {httpProxy: "http://restored.example.com:3128", noProxy: ".cluster.local,.svc"}}`)
		f.followed(t, r)
		took := f.restore(t, saved)
		// What the Nodes say is from before the change as well: the hosts show that it was changed back.
		t.Logf("a change that nodes have followed: changed back %.1f s after the restore", took(func() bool {
			for _, m := range f.machines {
				n := f.node(t, m.name)
				if m.since(t, r.machines[m.name]).Starts["kubelet"] < 2 || !observer.IsCurrent(*n) || isKeptFree(n) {
					return false
				}
			}
			return true
		}))
		f.rest(t)
		for _, m := range f.machines {
			if got := m.since(t, r.machines[m.name]); got.Boots != 0 || got.Starts["kubelet"] != 2 {
				t.Errorf("%s: %d boots, the kubelet was started %d times, want 2: for the change, and back", m.name, got.Boots, got.Starts["kubelet"])
			}
		}
	})
}

// isKeptFree reports whether the operator keeps a Node free of new pods, or from the autoscaler.
func isKeptFree(n *corev1.Node) bool {
	return n.Spec.Unschedulable || n.Annotations[published.CordonAnnotation] != "" || n.Annotations[windowsnode.ScaleDownAnnotation] != ""
}

func (f *fleet) save(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), fmt.Sprintf("etcd-%d", time.Now().UnixNano()))
	must(t, f.plane.Save(folder))
	return folder
}

// restore returns when the API server answers again. What it returns waits for something, and returns how many seconds after that it was.
func (f *fleet) restore(t *testing.T, saved string) (took func(done func() bool) float64) {
	t.Helper()
	must(t, f.plane.Restore(saved))
	back := time.Now()
	return func(done func() bool) float64 {
		t.Helper()
		eventually(t, "what follows a restore", done)
		return time.Since(back).Seconds()
	}
}
