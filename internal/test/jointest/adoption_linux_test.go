package jointest_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/fleet"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/keys"
	"wmco/controller/node"
	"wmco/controller/prerequisites"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/record"
	"wmco/internal/hostsim/simulation"
)

// adopt asks for the adoption of a node.
func (w *world) adopt(name string) {
	w.t.Helper()
	w.annotate(name, published.AdoptAnnotation, published.AdoptTrue)
}

// unannotate removes annotations of a Node.
func (w *world) unannotate(name string, annotations ...string) {
	w.t.Helper()
	var changes []string
	for _, key := range annotations {
		changes = append(changes, fmt.Sprintf("%q:null", key))
	}
	patch := []byte(`{"metadata":{"annotations":{` + strings.Join(changes, ",") + `}}}`)
	must(w.t, w.Patch(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch(types.MergePatchType, patch)))
}

// hasUpload reports whether a node agent was uploaded to a machine.
func (m *joinedMachine) hasUpload(t *testing.T) bool {
	t.Helper()
	all, err := m.Snapshot(t.Context())
	must(t, err)
	for path, file := range all.Files {
		if file.Kind == plan.FileRegular && strings.HasPrefix(strings.ToLower(path), `c:\windows\wmco\`) {
			return true
		}
	}
	return false
}

// adopted reports whether a node is adopted: by its record, with our agent, and open for pods.
func (w *world) adopted(name, address string) bool {
	w.t.Helper()
	id := record.OfEntry(address)
	if strings.HasPrefix(name, "machine-") {
		id = w.machineID(name)
	}
	r, _, err := w.login().Records.GetRecord(w.t.Context(), id)
	must(w.t, err)
	return r.Node == name && r.Origin == record.OriginAdopted && !r.Adopting && w.joined(name)
}

// recordOf returns the record of an instance.
func (w *world) recordOf(address string) record.Record {
	w.t.Helper()
	r, _, err := w.login().Records.GetRecord(w.t.Context(), record.OfEntry(address))
	must(w.t, err)
	return r
}

// TestANodeIsAdoptedByAnAnnotation: the plan is reported before anything is changed, the node is drained because its containerd is exchanged, and it
// is removed later as one that has joined.
func TestANodeIsAdoptedByAnAnnotation(t *testing.T) {
	w := newWorld(t)
	w.existingNodes(map[string]string{"instance-a": "192.0.2.81", "instance-b": "192.0.2.82"}, "instance-a")
	a, b := w.machines["instance-a"], w.machines["instance-b"]
	w.app("app", 2, "instance-a")
	eventually(t, "the pods", func() bool { return w.running("app", "instance-a") == 2 })
	dialed := w.at.dialed(t, "192.0.2.81")
	before := w.node("instance-b")
	w.operate()
	eventually(t, "the condition about both nodes, with what to do", func() bool {
		c := w.condition(prerequisites.NodesAdopted)
		return c.Reason == fleet.ReasonWaitingForAdoption && strings.Contains(c.Message, "instance-a, instance-b") && strings.Contains(c.Message, "wmco adopt ")
	})
	if n := w.at.dialed(t, "192.0.2.81"); n != dialed {
		t.Errorf("a host that waits was reached %d times", n-dialed)
	}

	// A paused node is looked at, and its plan is shown.
	w.annotate("instance-a", published.PausedAnnotation, "true")
	w.adopt("instance-a")
	w.awaitEvent(node.EventAdoptionPlanned, "instance-a", "impact drain", "restarts", "containerd", "nothing was changed yet")
	eventually(t, "the plan in the status", func() bool {
		h := w.host("instance-a")
		return h.State == nodestate.Waiting && h.Reason == fleet.ReasonAdopting && strings.Contains(h.Message, "impact drain")
	})
	starts := a.Starts()
	if !a.hasExistingAgent() || a.Text(older) != "containerd 1.7" || w.running("app", "instance-a") != 2 {
		t.Fatal("a host was changed before its turn")
	}

	w.unannotate("instance-a", published.PausedAnnotation)
	eventually(t, "the adopted node", func() bool { return w.adopted("instance-a", "192.0.2.81") })
	w.awaitEvent(node.EventAdopted, "instance-a")
	eventually(t, "the whole bundle", func() bool {
		row := fleet.Of(windowsnode.Decode(*w.node("instance-a")), windowsnode.SilenceByKubelet)
		return row.State == nodestate.Updated && row.Agent != "" && w.node("instance-a").Annotations[published.AdoptAnnotation] == ""
	})
	n := w.node("instance-a")
	for _, key := range []string{configure.InstanceAnnotation, configure.UsernameAnnotation, keys.HashAnnotation, hosts.PinAnnotation} {
		if n.Annotations[key] == "" {
			t.Errorf("the adopted Node lacks %s", key)
		}
	}
	if a.hasExistingAgent() || !strings.Contains(a.agentProgram(), "wmco-node") || a.Text(older) == "containerd 1.7" {
		t.Error("the host has the existing operator's programs")
	}
	if now := a.Starts(); now["kubelet"] != starts["kubelet"]+1 {
		t.Errorf("the kubelet was started %d times for one adoption", now["kubelet"]-starts["kubelet"])
	}
	// The other one was left alone.
	if after := w.node("instance-b"); !b.hasExistingAgent() || !maps.Equal(before.Annotations, after.Annotations) {
		t.Errorf("a node that was not asked for was changed: %v", after.Annotations)
	}

	w.removeEntry("192.0.2.81")
	w.annotate("instance-a", node.RemoveAnnotation, "true") // instance-b, which was never reached, is not the same host
	eventually(t, "the end of the adopted Node", func() bool { return !w.hasNode("instance-a") })
	w.awaitEvent("InstanceTeardown", "instance-a", "cleaned up")
	a.endsServices(t)
	if a.Text(`C:\k\kubelet.exe`) != "" || w.recordOf("192.0.2.81").Node != "" {
		t.Error("the host still has a kubelet, or its record")
	}
}

// TestAnAdoptionWithoutADrain: where only the agent and a service differ, no pod is evicted, and unchanged services are not restarted.
func TestAnAdoptionWithoutADrain(t *testing.T) {
	w := newWorld(t)
	w.existingNodes(map[string]string{"instance-c": "192.0.2.83"})
	m := w.machines["instance-c"]
	w.app("app", 1, "instance-c")
	w.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "guard"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app"}}},
	})
	eventually(t, "the pod", func() bool { return w.running("app", "instance-c") == 1 })
	starts := m.Starts()
	w.operate()
	w.adopt("instance-c")
	w.awaitEvent(node.EventAdoptionPlanned, "instance-c", "impact restart", bundle.AgentService)
	eventually(t, "the adopted node", func() bool { return w.adopted("instance-c", "192.0.2.83") })
	if now := m.Starts(); now["containerd"] != starts["containerd"] || now["windows_exporter"] != starts["windows_exporter"]+1 {
		t.Errorf("services were started %v, before %v", now, starts)
	}
	if w.running("app", "instance-c") != 1 {
		t.Error("the pod is gone")
	}
	// The private key is exchanged, and the host accepts the new one alone.
	w.signer = w.newSecret()
	must(t, m.ssh.authorize(w.signer))
	// It was the only entry: its removal is confirmed, as that of an instance which has joined.
	must(t, w.Delete(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "guard"}}))
	w.removeEntry("192.0.2.83")
	w.annotateAs(w.awaitEvent("RemovalNotConfirmed", "instance-c", "has no entry", "fix: ", node.RemoveAnnotation+"=true"))
	eventually(t, "the end of the adopted Node", func() bool { return !w.hasNode("instance-c") })
	m.endsServices(t)
}

// TestAHostWithAnotherKeyThanThePinnedOneIsNotAdopted: the message has the fix, and the adoption goes on when that was done.
func TestAHostWithAnotherKeyThanThePinnedOneIsNotAdopted(t *testing.T) {
	w := newWorld(t)
	w.existingNodes(map[string]string{"instance-d": "192.0.2.84"})
	m := w.machines["instance-d"]
	other, _ := newKey(t)
	w.annotate("instance-d", hosts.PinAnnotation, hosts.EncodeKey(other.PublicKey()))
	w.operate()
	w.adopt("instance-d")
	note := w.awaitEvent("InstanceSetupFailure", configure.InstancesName, configure.ReasonHostKey, "192.0.2.84", "oc annotate node instance-d "+hosts.PinAnnotation+"-")
	if !m.hasExistingAgent() || w.recordOf("192.0.2.84").HostKey != "" || m.hasUpload(t) {
		t.Errorf("a host with another key was used: %s", note)
	}
	w.unannotate("instance-d", hosts.PinAnnotation, hosts.PinTypeAnnotation)
	eventually(t, "the adopted node", func() bool { return w.adopted("instance-d", "192.0.2.84") })
	if got := w.node("instance-d").Annotations[hosts.PinAnnotation]; got != hosts.EncodeKey(m.ssh.showKey(t)) {
		t.Error("the Node has no copy of the key of its host")
	}
}

// TestANodeCannotHaveAnotherHostAdopted: a Node reports the address of another one of the existing operator, with the key of that one, and asks for its
// own adoption. Nothing is done with the other host; the other Node is adopted when it is asked for.
func TestANodeCannotHaveAnotherHostAdopted(t *testing.T) {
	w := newWorld(t)
	w.existingNodes(map[string]string{"instance-e": "192.0.2.85"})
	m := w.machines["instance-e"]
	w.otherNode("aaa-liar", "windows", "192.0.2.85")
	t.Cleanup(func() {
		must(t, client.IgnoreNotFound(w.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "aaa-liar"}})))
	})
	w.annotate("aaa-liar", published.VersionAnnotation, m.existing.Version)
	w.annotate("aaa-liar", hosts.PinAnnotation, hosts.EncodeKey(m.ssh.showKey(t)))
	w.adopt("aaa-liar")
	w.operate()
	w.awaitEvent("InstanceSetupFailure", configure.InstancesName, configure.ReasonNotTheHost, "aaa-liar", "instance-e", "nothing was changed")
	if !m.hasExistingAgent() || w.recordOf("192.0.2.85").Node != "" {
		t.Fatal("the host of another node was taken")
	}
	w.adopt("instance-e")
	eventually(t, "the adopted node", func() bool { return w.adopted("instance-e", "192.0.2.85") })
	if n := w.node("aaa-liar"); n.Annotations[published.ReportAnnotation] != "" || n.Annotations[published.DesiredAnnotation] != "" {
		t.Errorf("the Node of a liar got %v", n.Annotations)
	}
}

// TestAnOperatorIsKilledWhileItAdopts: another one goes on, and the node is adopted once.
func TestAnOperatorIsKilledWhileItAdopts(t *testing.T) {
	w := newWorld(t)
	w.existingNodes(map[string]string{"instance-f": "192.0.2.86"})
	w.adopt("instance-f")
	m := w.machines["instance-f"]
	for _, reached := range []func() bool{
		func() bool { return w.recordOf("192.0.2.86").Adopting },
		func() bool { return w.node("instance-f").Annotations[published.ReportAnnotation] != "" },
		func() bool { return w.node("instance-f").Annotations[published.DesiredAnnotation] != "" },
		func() bool { return !m.hasExistingAgent() },
	} {
		o := w.process(w.settings())
		eventually(t, "a moment to kill the operator", reached)
		o.kill()
	}
	w.operate()
	eventually(t, "the adopted node", func() bool { return w.adopted("instance-f", "192.0.2.86") })
}

// TestARolledBackAdoptionLeavesTheExistingAgent: a service that does not become healthy brings everything back.
func TestARolledBackAdoptionLeavesTheExistingAgent(t *testing.T) {
	w := newWorld(t)
	w.existingNodes(map[string]string{"instance-g": "192.0.2.87"})
	m := w.machines["instance-g"]
	const file = `C:\k\tls\windows-exporter-webconfig.yaml`
	must(t, m.WriteFile(t.Context(), file, bundle.AccessUsers, []byte("of the existing operator")))
	must(t, m.Behave(func(s *simulation.Script) {
		s.Services["windows_exporter"] = simulation.Behaviour{Needs: []simulation.Condition{{File: file, Contains: "existing operator"}}}
	}))
	w.operate()
	w.adopt("instance-g")
	w.awaitEvent(node.EventNotAdopted, "instance-g", "as the existing operator left it", "windows_exporter")
	eventually(t, "the existing agent", m.hasExistingAgent)
	eventually(t, "the failure in the status", func() bool {
		h := w.host("instance-g")
		return h.State == nodestate.Degraded && h.Reason == string(published.StateRolledBack)
	})
	exporter, err := m.Services(t.Context(), []string{"windows_exporter"})
	must(t, err)
	if exporter[0].CommandLine != m.existing.Command("windows_exporter") {
		t.Errorf("windows_exporter runs %s", exporter[0].CommandLine)
	}
	must(t, m.Behave(func(s *simulation.Script) { s.Services = nil }))
	w.annotate("instance-g", published.RetryAnnotation, "now")
	eventually(t, "the adopted node", func() bool { return w.adopted("instance-g", "192.0.2.87") })
}

// TestTheSettingAdoptsAllNodes: one after the other, the canary first, and a withdrawn one waits again.
func TestTheSettingAdoptsAllNodes(t *testing.T) {
	w := newWorld(t)
	nodes := map[string]string{"instance-h": "192.0.2.88", "machine-i": "192.0.2.89"}
	w.existingNodes(nodes, "instance-h", "machine-i")
	w.create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config"},
		Data:       map[string]string{"config.yaml": "adoption: Rollout\nrollout: {settle: 1s}\n"},
	})
	w.operate()
	both := false
	eventually(t, "the adopted nodes", func() bool {
		h, i := w.node("instance-h"), w.node("machine-i")
		both = both || h.Spec.Unschedulable && i.Spec.Unschedulable
		return w.adopted("instance-h", nodes["instance-h"]) && w.adopted("machine-i", nodes["machine-i"])
	})
	if both {
		t.Error("both nodes were cordoned at once")
	}
	eventually(t, "the condition that all are adopted", func() bool { return w.condition(prerequisites.NodesAdopted).Status == metav1.ConditionTrue })
}

// TestAnAdoptionIsWithdrawn: before its turn, the node waits again when it is not asked for any longer, or its entry was removed.
func TestAnAdoptionIsWithdrawn(t *testing.T) {
	w := newWorld(t)
	nodes := map[string]string{"instance-j": "192.0.2.90", "instance-k": "192.0.2.91"}
	w.existingNodes(nodes)
	for name := range nodes {
		w.annotate(name, published.PausedAnnotation, "true")
		w.adopt(name)
	}
	w.operate()
	for name := range nodes {
		w.awaitEvent(node.EventAdoptionPlanned, name, "nothing was changed yet")
	}
	w.annotate("instance-j", published.AdoptAnnotation, "false")
	w.removeEntry("192.0.2.91")
	for name, address := range nodes {
		eventually(t, name+" to wait again", func() bool {
			return w.node(name).Annotations[published.ReportAnnotation] == "" && w.recordOf(address).Node == ""
		})
		if !w.machines[name].hasExistingAgent() || w.node(name).Spec.Unschedulable {
			t.Errorf("%s was changed", name)
		}
	}
	eventually(t, "the condition about both", func() bool {
		return strings.Contains(w.condition(prerequisites.NodesAdopted).Message, "instance-j, instance-k")
	})
}
