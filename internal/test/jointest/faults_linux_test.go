package jointest_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/records"
	"wmco/applier/remote"
	"wmco/controller/gather"
	"wmco/controller/windowsnode/record"
	"wmco/internal/test/sshtest/sshd"
)

const (
	joined = "InstanceSetup"
	fails  = "InstanceSetupFailure"
)

// awaitEvent waits for an event about an object with these parts, and returns its note.
func (w *world) awaitEvent(reason, about string, parts ...string) string {
	w.t.Helper()
	var found string
	eventually(w.t, "an event "+reason+" about "+about+" with "+strings.Join(parts, ", "), func() bool {
		for _, note := range w.events(reason, about) {
			if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(note, part) }) {
				found = note
				return true
			}
		}
		return false
	})
	return found
}

// TestWhatIsWrongWithAHostIsSaidAndHoldsUpNobody: many hosts at once, each with its own fault, which a person then fixes by the event.
func TestWhatIsWrongWithAHostIsSaidAndHoldsUpNobody(t *testing.T) {
	w := newWorld(t)
	stranger, _ := newKey(t)
	w.names["win.example.com"] = []string{"192.0.2.21"}
	w.names["twin.example.com"] = []string{"192.0.2.22"}
	w.machine("by-name", "192.0.2.21")
	must(t, w.at.put("win.example.com", w.machines["by-name"].ssh.address()))
	w.machine("twin", "192.0.2.22")
	must(t, w.at.put("twin.example.com", w.machines["twin"].ssh.address()))
	w.machineWith("refuses", "192.0.2.23", sshd.Options{Key: stranger})
	w.machine("reinstalled", "192.0.2.24")
	w.pin("192.0.2.24", stranger.PublicKey())
	w.machine("taken", "192.0.2.25")
	w.otherNode("taken", "windows", "192.0.2.125")
	w.machine("linux", "192.0.2.26")
	w.otherNode("linux", "linux", "192.0.2.126")
	w.machine("healthy", "192.0.2.29")
	entries := w.instances("win.example.com", "192.0.2.22", "twin.example.com", "192.0.2.23", "192.0.2.24", "192.0.2.25", "192.0.2.26", "192.0.2.27", "192.0.2.29")
	entries.Data["192.0.2.28"] = "password=none"
	entries.Data["missing.example.com"] = "username=Administrator"
	must(t, w.Update(t.Context(), entries))
	stop := w.operate()

	const about = "windows-instances"
	w.allJoin([]string{"healthy", "by-name", "twin"})
	w.awaitEvent(joined, about, "192.0.2.29")
	if got := w.node("by-name").Annotations["windowsmachineconfig.openshift.io/instance"]; got != "win.example.com" {
		t.Errorf("the Node of the host with a DNS name is for %q", got)
	}
	w.awaitEvent(fails, about, "192.0.2.27", "Unreachable", "fix: ")
	w.awaitEvent(fails, about, "192.0.2.23", "LoginRefused", "fix: add the public key")
	w.awaitEvent(fails, about, "192.0.2.25", "NodeNameTaken", "192.0.2.125", "fix: ")
	w.awaitEvent(fails, about, "192.0.2.26", "NodeNameTaken", "a Node of linux", "fix: ")
	w.awaitEvent(fails, about, "twin.example.com", "InstanceTaken", "192.0.2.22", "fix: remove the entry")
	w.awaitEvent(fails, about, "192.0.2.28", "username=<name>")
	w.awaitEvent(fails, about, "missing.example.com", "cannot be resolved", "fix: ")
	changed := w.awaitEvent(fails, about, "192.0.2.24", "HostKeyChanged", "fix: ")

	// Each is fixed as in its message.
	w.machine("late", "192.0.2.27")
	must(t, w.machines["refuses"].ssh.forgetKeys())
	must(t, w.machines["refuses"].ssh.authorize(w.signer))
	w.unpinAs(changed)
	for _, name := range []string{"taken", "linux"} {
		must(t, w.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	// An operator tries them again within a minute, a new one at once.
	stop()
	w.operate()
	w.allJoin([]string{"late", "refuses", "reinstalled", "taken", "linux"})
	w.awaitEvent(joined, about, "192.0.2.27")
}

// pin notes a host key, as if the host had been reached before.
func (w *world) pin(address string, key ssh.PublicKey) {
	w.t.Helper()
	target := remote.Target{User: remote.DefaultUser, Address: address + ":22", ID: string(record.OfEntry(address))}
	must(w.t, w.login().Pin(w.t.Context(), target, key))
}

// unpinAs follows an event about a changed host key.
func (w *world) unpinAs(note string) {
	w.t.Helper()
	m := regexp.MustCompile(`oc -n (\S+) patch configmap (\S+) --type=json -p '(.*?)'`).FindStringSubmatch(note)
	if m == nil {
		w.t.Fatalf("no command in %q", note)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: m[1], Name: m[2]}}
	must(w.t, w.Patch(w.t.Context(), cm, client.RawPatch(types.JSONPatchType, []byte(m[3]))))
}

// otherNode is a Node that is not one of the machines.
func (w *world) otherNode(name, system, address string) {
	w.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: system}}}
	must(w.t, w.Create(w.t.Context(), n))
	// A patch: the controllers of Nodes write them too.
	patch := fmt.Appendf(nil, `{"status":{"addresses":[{"type":"InternalIP","address":%q}]}}`, address)
	must(w.t, w.Status().Patch(w.t.Context(), n, client.RawPatch(types.MergePatchType, patch)))
}

// TestAMachineIsWaitedForAndLeftWhenItIsDeleted: one whose user data still runs is no failure, one that is deleted is not reached again.
func TestAMachineIsWaitedForAndLeftWhenItIsDeleted(t *testing.T) {
	w := newWorld(t)
	slow := w.machineWith("machine-slow", "192.0.2.31", sshd.Options{Key: w.signer, Unauthorized: true})
	w.owned(w.machineSet("set"), "machine-slow", "192.0.2.31")
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-replacements"}, Data: map[string]string{"set": "1", "other": "2"}})
	gone := w.machine("machine-gone", "192.0.2.32")
	object := w.machineObject("machine-gone", "192.0.2.32")
	kept := w.machineWith("machine-kept", "192.0.2.33", sshd.Options{Key: w.signer, Unauthorized: true})
	// A Machine that is being deleted stays until machine-api has removed its host.
	deleting := w.machineObject("machine-kept", "192.0.2.33", "machine.machine.openshift.io")
	w.operate()
	eventually(t, "the run on the machine that vanishes", func() bool { return gone.phase(t) != "" })
	gone.PowerOff()
	must(t, w.Delete(t.Context(), object))
	eventually(t, "the refused login", func() bool { return strings.Contains(w.host("machine-kept").Message, "the host refuses the login") })
	must(t, w.Delete(t.Context(), deleting))
	must(t, kept.ssh.authorize(nil))
	before := w.at.dialed(t, "192.0.2.33")

	eventually(t, "the refused login", func() bool { return strings.Contains(w.host("machine-slow").Message, "the host refuses the login") })
	must(t, slow.ssh.authorize(nil))
	w.allJoin([]string{"machine-slow"})
	eventually(t, "the end of the count of replacements, as a Machine has joined", func() bool { return w.replaced("set") == "" })
	if got := w.replaced("other"); got != "2" {
		t.Errorf("of another MachineSet %q were replaced in a row", got)
	}
	if notes := w.events("MachineSetupFailure", "machine-slow"); len(notes) > 0 {
		t.Errorf("a machine whose user data runs is a failure: %q", notes)
	}
	if got := w.at.dialed(t, "192.0.2.33"); got != before {
		t.Errorf("a Machine that is deleted was reached %d times more", got-before)
	}
	if w.hasNode("machine-kept") || w.hasNode("machine-gone") || kept.Text(records.FileLedger) != "" {
		t.Error("a Machine that is deleted has joined")
	}
}
