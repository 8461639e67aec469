package jointest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/windowsnode/record"
	"wmco/internal/hostsim/simulation"
)

// TestMachinesGetTheAddressesOfThoseThatGo: a MachineSet is scaled from six to none and up again, and the old Machines, one of which had failed, are
// still there with their addresses. One of the old hosts answers at first. One address is used a third time.
func TestMachinesGetTheAddressesOfThoseThatGo(t *testing.T) {
	w := newWorld(t)
	const finalizer = "machine.machine.openshift.io"
	address := func(i int) string { return fmt.Sprintf("192.0.2.%d", 110+i) }
	names := func(from, to int) (list []string) {
		for i := from; i <= to; i++ {
			list = append(list, fmt.Sprintf("machine-%d", i))
		}
		return list
	}
	for i, name := range names(1, 5) {
		w.machine(name, address(i))
		w.machineObject(name, address(i), finalizer)
	}
	lost := w.machineObject("machine-6", address(5), finalizer)
	lost.Status.Phase = new("Failed")
	must(t, w.Status().Update(t.Context(), lost))
	must(t, w.at.put(address(5), nowhere))
	// The key of a host that was there before, as the existing operator pins it.
	stranger, _ := newKey(t)
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: hosts.PinsConfigMap}, Data: map[string]string{address(5): hosts.EncodeKey(stranger.PublicKey())}})
	w.operate()
	w.allJoin(names(1, 5))
	for _, name := range names(1, 6) {
		w.deleteMachine(name)
	}
	for _, name := range names(1, 4) {
		w.machines[name].PowerOff()
	}

	w.machineObject("machine-11", address(4))
	w.awaitEvent("MachineSetupFailure", "machine-11", "SameHost", "Machine machine-11", "Machine machine-5", "node machine-5", "nothing was changed", "fix: ")
	w.machines["machine-5"].PowerOff()
	for i, name := range names(7, 12) {
		w.machine(name, address(i))
		if name != "machine-11" {
			w.machineObject(name, address(i), finalizer)
		}
	}
	w.allJoin(names(7, 12))
	w.deleteMachine("machine-7")
	w.machines["machine-7"].PowerOff()
	w.machine("machine-13", address(0))
	w.machineObject("machine-13", address(0))
	w.allJoin(names(8, 13))
	if strings.Contains(w.log.String(), "AddressClaimed") {
		t.Error("a Node with the address of a Machine that goes is said to lie")
	}
	for _, name := range append(names(1, 5), "machine-7") {
		if !w.isDeleting(name) || !w.hasNode(name) {
			t.Errorf("Machine %s and its Node are gone before machine-api has removed them", name)
		}
	}
}

// deleteMachine asks for the removal of a Machine.
func (w *world) deleteMachine(name string) {
	w.t.Helper()
	must(w.t, w.Delete(w.t.Context(), &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: name}}))
}

// TestAKeyThatAPersonPinsForAMachineIsKept: it was pinned after the Machine was made, so it is that of its host. Whoever answers in the place of
// that host has another one, and is never taken for it.
func TestAKeyThatAPersonPinsForAMachineIsKept(t *testing.T) {
	w := newWorld(t)
	impostor := w.machine("machine-a", "192.0.2.109")
	machine := w.machineObject("machine-a", "192.0.2.109")
	right, _ := newKey(t)
	pins := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: hosts.PinsConfigMap}, Data: map[string]string{"192.0.2.109": hosts.EncodeKey(right.PublicKey())}}
	w.create(pins)
	w.operate()
	w.awaitEvent("MachineSetupFailure", "machine-a", "HostKeyChanged", "fix: ", hosts.PinsConfigMap)
	tries := w.at.dialed(t, "192.0.2.109")
	w.touch(machine)
	eventually(t, "another attempt", func() bool { return w.at.dialed(t, "192.0.2.109") > tries })
	r, _, err := w.login().Records.GetRecord(t.Context(), w.machineID("machine-a"))
	must(t, err)
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(pins), pins))
	if r.HostKey != "" || pins.Data["192.0.2.109"] == "" || len(impostor.Starts()) > 0 {
		t.Errorf("another host was taken for the Machine's: record %+v, pins %v, services %v", r, pins.Data, impostor.Starts())
	}
	// The person was wrong.
	must(t, w.Delete(t.Context(), pins))
	w.touch(machine)
	w.allJoin([]string{"machine-a"})
}

// touch changes an object, so that controllers look at it now.
func (w *world) touch(o client.Object) {
	w.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/touched":%q}}}`, time.Now())
	must(w.t, w.Patch(w.t.Context(), o, client.RawPatch(types.MergePatchType, patch)))
}

// TestTwoMachinesWithOneAddress: none of them gets the host, and both report it, until one is deleted. Of two one of which is a node, the other
// reports it.
func TestTwoMachinesWithOneAddress(t *testing.T) {
	w := newWorld(t)
	m := w.machine("machine-a", "192.0.2.104")
	w.machineObject("machine-a", "192.0.2.104")
	other := w.machineObject("machine-b", "192.0.2.104")
	w.operate()
	for _, name := range []string{"machine-a", "machine-b"} {
		w.awaitEvent("MachineSetupFailure", name, "SameHost", "Machine machine-a", "Machine machine-b", "192.0.2.104", "fix: check in the cloud")
	}
	eventually(t, "both in the condition", func() bool {
		c := w.condition(configure.HostsJoined)
		return c.Status == metav1.ConditionFalse && c.Reason == configure.ReasonSameHost && strings.Contains(c.Message, "machine-a, machine-b")
	})
	if len(m.Starts()) > 0 || w.at.dialed(t, "192.0.2.104") > 0 {
		t.Errorf("the host was reached: services %v", m.Starts())
	}
	must(t, w.Delete(t.Context(), other))
	w.allJoin([]string{"machine-a"})
	check := w.untouched("machine-a", w.machineID("machine-a"))
	w.machineObject("machine-c", "192.0.2.104")
	w.awaitEvent("MachineSetupFailure", "machine-c", "SameHost", "Machine machine-c", "Machine machine-a", "node machine-a", "fix: check in the cloud")
	check()
}

// TestAnEntryThatIsReplacedByAnotherAddressOfTheHost: the host keeps its key, so it is the same one. Nothing is done to its node.
func TestAnEntryThatIsReplacedByAnotherAddressOfTheHost(t *testing.T) {
	w := newWorld(t)
	a := w.machine("instance-a", "192.0.2.105")
	must(t, a.Edit(t.Context(), func(s *simulation.State) { s.Facts.Addresses = append(s.Facts.Addresses, "192.0.2.106") }))
	must(t, w.at.put("192.0.2.106", a.ssh.address()))
	w.instances("192.0.2.105")
	w.operate()
	w.allJoin([]string{"instance-a"})
	uid, starts := w.node("instance-a").UID, a.Starts()["kubelet"]
	w.changeEntries(func(data map[string]string) {
		data["192.0.2.106"] = data["192.0.2.105"]
		delete(data, "192.0.2.105")
	})
	eventually(t, "the record of the new entry", func() bool {
		r, _, err := w.login().Records.GetRecord(t.Context(), record.OfEntry("192.0.2.106"))
		return err == nil && r.Node == "instance-a" && r.NodeUID == uid && r.HostKey != ""
	})
	eventually(t, "no record of the old entry", func() bool {
		_, known, err := w.login().Records.GetRecord(t.Context(), record.OfEntry("192.0.2.105"))
		return err == nil && !known
	})
	w.removedNothing(a, "instance-a")
	if n := w.node("instance-a"); n.UID != uid || a.Starts()["kubelet"] != starts {
		t.Errorf("the node was set up again: %s, before %s; kubelet started %d times, before %d", n.UID, uid, a.Starts()["kubelet"], starts)
	}
}

// TestAMachineWhoseAddressesChangeBeforeItsNode is the same host: status.nodeRef is not there, and its Node reports the old address.
func TestAMachineWhoseAddressesChangeBeforeItsNode(t *testing.T) {
	w := newWorld(t)
	m := w.machine("machine-a", "192.0.2.107")
	must(t, m.Edit(t.Context(), func(s *simulation.State) { s.Facts.Addresses = append(s.Facts.Addresses, "192.0.2.108") }))
	must(t, w.at.put("192.0.2.108", m.ssh.address()))
	object := w.machineObject("machine-a", "192.0.2.107")
	w.operate()
	w.allJoin([]string{"machine-a"})
	uid, starts, id := w.node("machine-a").UID, m.Starts()["kubelet"], w.machineID("machine-a")
	object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.108"}}
	must(t, w.Status().Update(t.Context(), object))
	eventually(t, "the new address in the record", func() bool {
		r, _, err := w.login().Records.GetRecord(t.Context(), id)
		return err == nil && r.Address == "192.0.2.108" && r.NodeUID == uid
	})
	w.removedNothing(m, "machine-a")
	if m.Starts()["kubelet"] != starts {
		t.Errorf("kubelet was started %d times, before %d", m.Starts()["kubelet"], starts)
	}
}

// removedNothing checks that a node is complete, and its services run.
func (w *world) removedNothing(m *joinedMachine, name string) {
	w.t.Helper()
	if n := w.findNode(name); n == nil || !w.joined(name) {
		w.t.Errorf("node %s is not what it was: %+v", name, n)
	}
	for _, service := range []string{"kubelet", "containerd", "windows-instance-config-daemon"} {
		if m.Status(service) != plan.ServiceRunning {
			w.t.Errorf("service %s is %s", service, m.Status(service))
		}
	}
}
