package jointest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/status"
	"wmco/controller/windowsnode/record"
	"wmco/internal/test/faults"
)

// TestMachinesThatRefuseTheKeyAreReplacedIfAsked: hosts whose SSH servers accept no key of the file that the node agent writes. Without the setting
// their Machines stay, and as long as no login is asked for, nothing is known of it. With it, one of a MachineSet is deleted at a time, and only while all others have Nodes. An instance stays.
func TestMachinesThatRefuseTheKeyAreReplacedIfAsked(t *testing.T) {
	w := newWorld(t)
	set := w.machineSet("keys-set")
	names := []string{"machine-k", "machine-l"}
	var machines []*machinev1beta1.Machine
	for i, name := range names {
		address := fmt.Sprintf("192.0.2.%d", 211+i)
		w.machine(name, address)
		machines = append(machines, w.owned(set, name, address))
	}
	w.machine("instance-k", "192.0.2.213")
	w.instances("192.0.2.213")
	all := append(slices.Clone(names), "instance-k")
	clock := faults.NewClock(t.Context())
	w.operateOn(clock)
	w.allJoin(all)
	eventually(t, "the keys to be accepted", func() bool { return w.condition(status.KeysAccepted).Status == metav1.ConditionTrue })
	for _, name := range all {
		must(t, w.machines[name].ssh.forgetKeys())
	}
	_, text := newKeyText(t)
	w.setSecret(text)
	now, err := ssh.ParsePrivateKey(text)
	must(t, err)
	recorded := []record.ID{record.OfMachine(machines[0].UID), record.OfMachine(machines[1].UID), record.OfEntry("192.0.2.213")}
	for _, id := range recorded {
		eventually(t, "the key that the agent of "+string(id)+" reports", func() bool { return w.acceptedKey(id) == lineOf(now) })
	}
	w.configure("ssh: Always")
	for _, name := range all {
		w.awaitEvent("LoginNotConfirmed", name, "fix: ")
	}
	logins := func(name string) int {
		return strings.Count(w.log.String(), `msg="logging in with another key or account" logger=node node=`+name+" ")
	}
	// later has the operator look at every host once more.
	later := func(d time.Duration) {
		t.Helper()
		clock.Step(d)
		for _, name := range all {
			w.annotate(name, "example.com/later", time.Now().Format(time.RFC3339Nano))
		}
		time.Sleep(2 * time.Second)
	}
	deleted := func() int { return count(names, w.isDeleting) }
	before := logins(names[0])
	eventually(t, "another login", func() bool { later(31 * time.Minute); return logins(names[0]) > before })
	if deleted() > 0 {
		t.Fatal("a Machine is deleted that was not to be replaced")
	}
	must(t, w.Update(t.Context(), settingsOf("keys: Replace")))
	eventually(t, "why a Machine is not replaced", func() bool {
		later(11 * time.Minute)
		return len(w.events("MachineDeletionRestricted", names[0])) > 0
	})
	w.awaitEvent("MachineDeletionRestricted", names[0], "does not accept the key of cloud-private-key", "has no Node")
	if deleted() > 0 {
		t.Fatal("a Machine is deleted while another one of its MachineSet has no Node")
	}
	for _, m := range machines {
		must(t, w.Get(t.Context(), client.ObjectKeyFromObject(m), m))
		m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: m.Name}
		must(t, w.Status().Update(t.Context(), m))
	}
	eventually(t, "a Machine that is replaced", func() bool { later(11 * time.Minute); return deleted() > 0 })
	gone := names[slices.IndexFunc(names, w.isDeleting)]
	w.awaitEvent("MachineDeleted", gone, "does not accept the key of cloud-private-key", "MachineSet keys-set creates another one")
	later(11 * time.Minute)
	if deleted() != 1 || w.replaced("keys-set") != "1" {
		t.Errorf("%d Machines of one MachineSet are deleted at once, %q are counted", deleted(), w.replaced("keys-set"))
	}
	if n := w.node("instance-k"); n == nil || n.DeletionTimestamp != nil {
		t.Error("the Node of an instance is deleted")
	}
}
