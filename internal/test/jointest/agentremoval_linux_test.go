package jointest_test

import (
	"strings"
	"testing"

	"wmco/bundle"
	"wmco/controller/configure"
)

// isGone checks that nothing of the operator is left on a host that its own agent has cleaned up, once it has booted.
func (m *joinedMachine) isGone(t *testing.T) {
	t.Helper()
	m.isEmpty(t)
	must(t, m.Reboot())
	after, err := m.Snapshot(t.Context())
	must(t, err)
	for path := range after.Files {
		// The folder of the records is that of the lock, which Windows removes with it (applier/winhost/files).
		if folded := strings.ToLower(path); strings.HasPrefix(folded, `c:\windows\wmco`) || strings.HasPrefix(folded, `c:\programdata\wmco\`) {
			t.Errorf("%s still has %s", m.Name(), path)
		}
	}
}

// TestANodeIsRemovedByItsAgent: after the join no SSH server can be reached. A host that is off is removed when it is back, and one whose entry comes back
// joins again, with the pinned key.
func TestANodeIsRemovedByItsAgent(t *testing.T) {
	w := newWorld(t)
	a, off := w.machine("instance-a", "192.0.2.71"), w.machine("instance-off", "192.0.2.72")
	w.machine("instance-stays", "192.0.2.73")
	w.instances("192.0.2.71", "192.0.2.72", "192.0.2.73")
	stop := w.operate()
	w.allJoin([]string{"instance-a", "instance-off", "instance-stays"})
	server := a.ssh.address()
	for _, address := range []string{"192.0.2.71", "192.0.2.72"} {
		must(t, w.at.put(address, nowhere))
	}
	dialed := w.at.dialed(t, "192.0.2.71")
	w.removeEntry("192.0.2.71")
	eventually(t, "the end of the Node", func() bool { return !w.hasNode("instance-a") })
	w.awaitEvent("InstanceTeardown", "instance-a", "cleaned up")
	eventually(t, "the end of the pinned key", func() bool { return !w.pinned("192.0.2.71") })
	a.isGone(t)
	if got := w.at.dialed(t, "192.0.2.71"); got != dialed {
		t.Errorf("the SSH server was dialed %d times", got-dialed)
	}
	// One that is off, while its operator is exchanged.
	off.PowerOff()
	w.setLost("instance-off")
	w.removeEntry("192.0.2.72")
	w.awaitEvent("InstanceRemovalWaiting", "instance-off", "192.0.2.72", "fix: ")
	if n := w.node("instance-off"); n.Annotations[configure.VersionAnnotation] != "" {
		t.Error("it is a node still")
	}
	stop()
	w.operate()
	must(t, off.PowerOn())
	eventually(t, "the end of the Node whose host is back", func() bool { return !w.hasNode("instance-off") })
	off.isGone(t)
	// The first one joins again, as a new one.
	must(t, w.at.put("192.0.2.71", server))
	w.addEntry("192.0.2.71")
	w.allJoin([]string{"instance-a"})
	if a.Status(bundle.RemovalService) != "" {
		t.Error("the removal is there still")
	}
	if !w.joined("instance-stays") {
		t.Error("the instance with an entry was removed")
	}
}
