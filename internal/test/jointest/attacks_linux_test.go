package jointest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/bundle/reason"
	"wmco/controller/configure"
	"wmco/controller/node"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/internal/hostsim/simulation"
)

// stolen is the certificate of a kubelet in the hands of an attacker: NodeRestriction lets them write the Node's own annotations and status.
type stolen struct {
	w    *world
	as   client.Client
	name string
}

// steal powers a machine off, so that its kubelet writes nothing any longer, and returns what its certificate allows.
func (w *world) steal(name string) stolen {
	w.t.Helper()
	w.machines[name].PowerOff()
	return w.kubelet(name)
}

// kubelet acts with the identity of a kubelet that goes on running.
func (w *world) kubelet(name string) stolen {
	w.t.Helper()
	c, err := client.New(w.user("system:node:"+name, "system:nodes"), client.Options{Scheme: w.Scheme()})
	must(w.t, err)
	return stolen{w, c, name}
}

// cordon cordons the Node or takes that back, while it is there.
func (s stolen) cordon(is bool) {
	s.w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.name}}
	must(s.w.t, client.IgnoreNotFound(s.as.Patch(s.w.t.Context(), node, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, is)))))
}

// annotate writes annotations; nil removes one. What the operator writes back is overwritten again.
func (s stolen) annotate(values map[string]any) {
	s.w.t.Helper()
	s.patch(map[string]any{"metadata": map[string]any{"annotations": values}}, false)
}

// relabel calls the Node one of another operating system.
func (s stolen) relabel(os string) {
	s.w.t.Helper()
	s.patch(map[string]any{"metadata": map[string]any{"labels": map[string]any{corev1.LabelOSStable: os}}}, false)
}

// claim reports these addresses, and no others.
func (s stolen) claim(addresses ...string) {
	s.w.t.Helper()
	var list []corev1.NodeAddress
	for _, a := range addresses {
		list = append(list, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	s.patch(map[string]any{"status": map[string]any{"addresses": list}}, true)
}

// forget removes the Node's version and bundle: the annotations, and the condition that its agent writes. Without
// that condition, the host of a Node that has not joined gets its bundle over SSH.
func (s stolen) forget() {
	s.w.t.Helper()
	s.annotate(map[string]any{published.VersionAnnotation: nil, published.ReportAnnotation: nil, published.DesiredAnnotation: nil})
	s.patch(map[string]any{"status": map[string]any{"conditions": nil}}, true)
}

func (s stolen) patch(body map[string]any, status bool) {
	s.w.t.Helper()
	text, err := json.Marshal(body)
	must(s.w.t, err)
	node, patch := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.name}}, client.RawPatch(types.MergePatchType, text)
	if status {
		must(s.w.t, s.as.Status().Patch(s.w.t.Context(), node, patch))
		return
	}
	must(s.w.t, s.as.Patch(s.w.t.Context(), node, patch))
}

// untouched returns a check that a host is as it is now: nothing was started, its services run, and its record is the same.
func (w *world) untouched(name string, id record.ID) (check func()) {
	w.t.Helper()
	m := w.machines[name]
	starts := m.Starts()
	before, known, err := w.login().Records.GetRecord(w.t.Context(), id)
	must(w.t, err)
	if !known || before.Node != name || before.HostKey == "" {
		w.t.Fatalf("the record of %s: %+v", name, before)
	}
	return func() {
		w.t.Helper()
		if !w.joined(name) {
			w.t.Errorf("node %s is not what it was: %+v", name, w.node(name))
		}
		for _, service := range []string{"kubelet", "containerd", "windows-instance-config-daemon"} {
			if m.Status(service) != plan.ServiceRunning {
				w.t.Errorf("service %s of %s is %s", service, name, m.Status(service))
			}
		}
		if now := m.Starts(); !maps.Equal(now, starts) {
			w.t.Errorf("services of %s were started: %v, before %v", name, now, starts)
		}
		if after, _, err := w.login().Records.GetRecord(w.t.Context(), id); err != nil || after != before {
			w.t.Errorf("the record of %s is %+v, before %+v (%v)", name, after, before, err)
		}
	}
}

// machineID is the ID of the record of a Machine.
func (w *world) machineID(name string) record.ID {
	w.t.Helper()
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(machinev1beta1.GroupVersion.WithKind("Machine"))
	must(w.t, w.Get(w.t.Context(), client.ObjectKey{Namespace: "openshift-machine-api", Name: name}, o))
	return record.OfMachine(o.UID)
}

// TestANodeCannotHaveAnotherHostRemoved: whom a removal reaches is in the operator's record. The Node's annotations name another
// Machine's host, or one with an entry.
func TestANodeCannotHaveAnotherHostRemoved(t *testing.T) {
	w := newWorld(t)
	w.machine("aaa-attacker", "192.0.2.81")
	w.machine("machine-victim", "192.0.2.82")
	w.machine("instance-victim", "192.0.2.83")
	w.machine("instance-last", "192.0.2.84")
	w.machineObject("machine-victim", "192.0.2.82")
	w.instances("192.0.2.81", "192.0.2.83", "192.0.2.84")
	w.operate()
	w.allJoin([]string{"aaa-attacker", "machine-victim", "instance-victim", "instance-last"})
	ofMachine := w.untouched("machine-victim", w.machineID("machine-victim"))
	ofInstance := w.untouched("instance-victim", record.OfEntry("192.0.2.83"))
	evil := w.steal("aaa-attacker")
	evil.claim("198.51.100.1")
	for _, address := range []string{"192.0.2.82", "192.0.2.83:22", "192.0.2.83"} {
		evil.annotate(map[string]any{configure.InstanceAnnotation: address, node.RemoveAnnotation: "force"})
		w.awaitReconciled("aaa-attacker")
		ofMachine()
		ofInstance()
	}
	w.removeEntry("192.0.2.84")
	eventually(t, "the removal of another instance", func() bool { return !w.hasNode("instance-last") })
	ofMachine()
	ofInstance()
	if !w.hasNode("aaa-attacker") {
		t.Error("the Node of an instance that has an entry is gone")
	}

	// Its own entry goes: only its own host is removed, whatever it claims.
	evil.annotate(map[string]any{configure.InstanceAnnotation: "192.0.2.82", node.RemoveAnnotation: nil})
	must(t, w.machines["aaa-attacker"].PowerOn())
	w.removeEntry("192.0.2.81")
	eventually(t, "its own removal", func() bool { return !w.hasNode("aaa-attacker") })
	w.machines["aaa-attacker"].isEmpty(t)
	ofMachine()
	ofInstance()
}

// TestANodeCannotTakeAnotherHost: a Node that reports the addresses of other hosts, and has forgotten its version and its report, gets
// neither a host that has joined nor one that is about to.
func TestANodeCannotTakeAnotherHost(t *testing.T) {
	w := newWorld(t)
	w.machine("aaa-attacker", "192.0.2.85")
	w.machine("machine-victim", "192.0.2.86")
	w.machine("instance-victim", "192.0.2.87")
	w.machine("instance-other", "192.0.2.91")
	w.machineObject("machine-victim", "192.0.2.86")
	w.instances("192.0.2.85", "192.0.2.87")
	w.operate()
	w.allJoin([]string{"aaa-attacker", "machine-victim", "instance-victim"})
	ofMachine := w.untouched("machine-victim", w.machineID("machine-victim"))
	ofInstance := w.untouched("instance-victim", record.OfEntry("192.0.2.87"))
	evil := w.steal("aaa-attacker")
	evil.claim("192.0.2.86", "192.0.2.87", "192.0.2.88", "192.0.2.89")
	evil.annotate(map[string]any{configure.InstanceAnnotation: "192.0.2.88"})
	evil.forget()
	w.awaitReconciled("aaa-attacker")
	// Until a host has joined that it does not name, its bundle would have reached the others.
	w.addEntry("192.0.2.91")
	w.allJoin([]string{"instance-other"})
	ofMachine()
	ofInstance()
	// A kubelet of Linux calls its Node one of Windows.
	w.otherNode("worker-0", "windows", "192.0.2.90")
	t.Cleanup(func() {
		must(t, w.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-0"}}))
	})
	// New hosts at addresses that it claims.
	w.machine("instance-new", "192.0.2.88")
	w.machine("machine-new", "192.0.2.89")
	w.machineObject("machine-new", "192.0.2.89")
	evil.annotate(map[string]any{published.VersionAnnotation: "1.0.0", published.ReportAnnotation: nil, published.DesiredAnnotation: nil}) // as if it waited for adoption
	w.addEntry("192.0.2.88")
	w.allJoin([]string{"instance-new", "machine-new"})
	ofMachine()
	ofInstance()
	// As a Node of Linux, whose addresses no other host may have in a certificate.
	evil.relabel("linux")
	w.serving("instance-victim", "192.0.2.87")
	if names := w.readers(); slices.Contains(names, "system:node:worker-0") || !slices.Contains(names, "system:node:instance-new") {
		t.Errorf("layers can be read by %q", names)
	}
	eventually(t, "the address that another host has to be said", func() bool { return len(w.events("AddressClaimed", "aaa-attacker")) > 0 })
}

// TestANodeCannotLeaveTheRecord: one that looks as if it waited for adoption is removed like any other.
func TestANodeCannotLeaveTheRecord(t *testing.T) {
	w := newWorld(t)
	a := w.machine("instance-a", "192.0.2.91")
	w.machine("instance-b", "192.0.2.92")
	w.instances("192.0.2.91", "192.0.2.92")
	w.operate()
	w.allJoin([]string{"instance-a", "instance-b"})
	evil := w.steal("instance-a")
	w.removeEntry("192.0.2.91")
	evil.annotate(map[string]any{published.ReportAnnotation: nil, published.DesiredAnnotation: nil, configure.InstanceAnnotation: nil, published.InstanceLabel: nil})
	evil.claim("192.0.2.92")
	must(t, a.PowerOn())
	evil.relabel("linux")
	eventually(t, "the removal", func() bool {
		if n := w.findNode("instance-a"); n != nil && n.Annotations[published.DesiredAnnotation] != "" {
			evil.annotate(map[string]any{published.ReportAnnotation: nil, published.DesiredAnnotation: nil})
		}
		return !w.hasNode("instance-a")
	})
	a.isEmpty(t)
	if !w.joined("instance-b") {
		t.Error("the other instance is not what it was")
	}
}

// awaitReconciled waits until the operator has judged a Node as it is now: an annotation that it takes back where the entry is there.
func (w *world) awaitReconciled(name string) {
	w.t.Helper()
	must(w.t, client.IgnoreNotFound(w.tryAnnotate(name, node.RemoveAnnotation, "force")))
	eventually(w.t, "the operator to judge "+name, func() bool {
		n := w.findNode(name)
		return n == nil || n.Annotations[node.RemoveAnnotation] == ""
	})
}

// awaitJudged waits until what the operator has begun with the Node of an instance has ended, and was done once more: it does one thing after the
// other with a Node, and takes the annotation back before it does anything else.
func (w *world) awaitJudged(name string) {
	w.t.Helper()
	for range 2 {
		w.awaitReconciled(name)
	}
}

// TestAHostThatIsAnotherNodeIsNotChanged: before each write the host states under its pinned key which Node it is. Here it was renamed, as if
// another computer had its address and its key.
func TestAHostThatIsAnotherNodeIsNotChanged(t *testing.T) {
	w := newWorld(t)
	a := w.machine("instance-a", "192.0.2.93")
	w.machine("instance-b", "192.0.2.94")
	w.instances("192.0.2.93", "192.0.2.94")
	w.operate()
	w.allJoin([]string{"instance-a", "instance-b"})
	w.endAgent("instance-a") // it would remove its own node
	must(t, a.Edit(t.Context(), func(s *simulation.State) { s.HostName = "renamed" }))
	starts := a.Starts()
	w.removeEntry("192.0.2.93")
	w.awaitEvent("InstanceRemovalWaiting", "instance-a", "it is node \"renamed\"", "nothing was changed", "fix: ")
	if !w.hasNode("instance-a") || a.Status("kubelet") != plan.ServiceRunning || !maps.Equal(a.Starts(), starts) {
		t.Errorf("the host was changed: %v, before %v", a.Starts(), starts)
	}
	must(t, a.Edit(t.Context(), func(s *simulation.State) { s.HostName = "instance-a" }))
	eventually(t, "the removal", func() bool { return !w.hasNode("instance-a") })
	a.isEmpty(t)
}

// TestANameThatAHostHasIsNotGivenAway: the Node of a host is gone for a while, as when the host joins again. Another host takes its name,
// and has the bootstrap token.
func TestANameThatAHostHasIsNotGivenAway(t *testing.T) {
	w := newWorld(t)
	w.machine("instance-a", "192.0.2.95")
	w.instances("192.0.2.95")
	w.operate()
	w.allJoin([]string{"instance-a"})
	w.machines["instance-a"].PowerOff()
	must(t, w.Delete(t.Context(), w.node("instance-a")))
	thief := w.machine("instance-a", "192.0.2.96")
	w.addEntry("192.0.2.96")
	w.awaitEvent("InstanceSetupFailure", "windows-instances", "NodeNameTaken", "192.0.2.96", "192.0.2.95", "fix: rename the computer")
	if w.hasNode("instance-a") || len(thief.Starts()) > 0 {
		t.Errorf("a host has joined under the name of another one: services %v", thief.Starts())
	}
	// A request with its key, as if it had its bundle.
	csr := impostor{node: "instance-a", signer: clientSigner, usages: clientUsages}.request(t, "thief")
	w.post(w.bootstrapper(), csr)
	eventually(t, "the host of the record to be asked", func() bool {
		return strings.Contains(w.log.String(), `"a host cannot be asked about its certificate" logger=csr csr=thief host=192.0.2.95`)
	})
	w.approvedNever("thief")
}

func (w *world) approvedNever(csr string) {
	w.t.Helper()
	for _, have := range w.requests() {
		if have.Name == csr && len(have.Status.Conditions) > 0 {
			w.t.Errorf("%s: %v", csr, have.Status.Conditions)
		}
	}
}

// TestASecondEntryOfAHostIsRefused: the host has two addresses. Nothing is done to it because of the second one.
func TestASecondEntryOfAHostIsRefused(t *testing.T) {
	w := newWorld(t)
	a := w.machine("instance-a", "192.0.2.97")
	must(t, a.Edit(t.Context(), func(s *simulation.State) { s.Facts.Addresses = append(s.Facts.Addresses, "192.0.2.98") }))
	must(t, w.at.put("192.0.2.98", a.ssh.address()))
	w.instances("192.0.2.97")
	w.operate()
	w.allJoin([]string{"instance-a"})
	check := w.untouched("instance-a", record.OfEntry("192.0.2.97"))
	w.addEntry("192.0.2.98")
	w.awaitEvent("InstanceSetupFailure", "windows-instances", "SameHost", "192.0.2.98", "192.0.2.97", "node instance-a", "fix: ")
	check()
}

// TestFactsOfANodeAreNotSignedUnlessTheyAreItsHosts: whoever may patch Nodes writes in the place of the node agent that the host has another address and
// another network. The node keeps what it has until its agent writes its own report again.
func TestFactsOfANodeAreNotSignedUnlessTheyAreItsHosts(t *testing.T) {
	w := newWorld(t)
	const name, entry = "instance-f", "win-f.example.com"
	w.names[entry] = []string{"192.0.2.226"}
	m := w.machine(name, "192.0.2.226")
	must(t, w.at.put(entry, m.ssh.address()))
	w.instances(entry)
	w.operate()
	w.allJoin([]string{name})
	check, honest := w.untouched(name, record.OfEntry(entry)), w.reported(name)
	bundles := func() bundle.Digest { return windowsnode.Decode(*w.node(name)).Desired.Bundle }
	signed := bundles()
	lie, facts := honest, *honest.Facts
	facts.Addresses = append(slices.Clone(facts.Addresses), "203.0.113.7")
	facts.DefaultRoute.Address = "203.0.113.7"
	lie.Facts = &facts
	text, err := lie.Encode()
	must(t, err)
	isHonest := func() bool {
		now := w.reported(name)
		return now.Facts != nil && now.Facts.DefaultRoute.Address == honest.Facts.DefaultRoute.Address
	}
	p := w.patcher()
	// The agent writes its own report again at once, and some seconds after each other time.
	eventually(t, "an event about the facts", func() bool {
		if now := bundles(); now != signed {
			t.Fatalf("the operator has signed the bundle %s, before %s", now, signed)
		}
		if isHonest() {
			p.put(name, map[string]any{published.ReportAnnotation: text})
		}
		return slices.ContainsFunc(w.events(reason.FactsContradicted, "windows-machine-config-operator"), func(note string) bool {
			return strings.Contains(note, "203.0.113.7") && strings.Contains(note, "fix: ")
		})
	})
	eventually(t, "the agent's own report", isHonest)
	check()
}

// TestANameThatWindowsReservesKeepsNoOtherHostFromJoining: a host may say that it is called con, and has a Node of that name then.
func TestANameThatWindowsReservesKeepsNoOtherHostFromJoining(t *testing.T) {
	w := newWorld(t)
	w.otherNode("con", "windows", "192.0.2.94")
	t.Cleanup(func() {
		must(t, w.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "con"}}))
	})
	w.machine("instance-a", "192.0.2.93")
	w.instances("192.0.2.93")
	w.operate()
	w.allJoin([]string{"instance-a"})
}
