package jointest_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/node"
	"wmco/controller/windowsnode/record"
	"wmco/internal/hostsim/simulation"
)

// TestAForcedRemovalForgetsItsOwnHostAlone: the cleanup fails, because the host is off or claims to be another one. The Node's annotations name
// other hosts, one of which was never reached: their records stay.
func TestAForcedRemovalForgetsItsOwnHostAlone(t *testing.T) {
	w := newWorld(t)
	w.machine("aaa-attacker", "192.0.2.111")
	w.machine("machine-victim", "192.0.2.112")
	w.machine("instance-victim", "192.0.2.113")
	renamed := w.machine("instance-renamed", "192.0.2.114")
	w.machineObject("machine-victim", "192.0.2.112")
	// Of the host of another Machine, which is off, a person has pinned the key.
	const off = "192.0.2.115"
	key, _ := newKey(t)
	pins := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: hosts.PinsConfigMap}, Data: map[string]string{off: hosts.EncodeKey(key.PublicKey())}}
	w.create(pins)
	w.machineObject("machine-off", off)
	w.instances("192.0.2.111", "192.0.2.113", "192.0.2.114")
	w.operate()
	w.allJoin([]string{"aaa-attacker", "machine-victim", "instance-victim", "instance-renamed"})
	ofMachine := w.untouched("machine-victim", w.machineID("machine-victim"))
	ofInstance := w.untouched("instance-victim", record.OfEntry("192.0.2.113"))
	evil := w.steal("aaa-attacker")
	must(t, renamed.Edit(t.Context(), func(s *simulation.State) { s.HostName = "instance-victim" }))
	w.endAgent("instance-renamed") // which would know better what it is
	starts := renamed.Starts()
	w.removeEntry("192.0.2.111")
	w.removeEntry("192.0.2.114")
	w.awaitEvent("InstanceRemovalWaiting", "aaa-attacker", "192.0.2.111", "fix: ", "oc annotate")
	if w.node("aaa-attacker").Annotations[published.VersionAnnotation] != "" {
		t.Error("a host whose cleanup has begun counts as one that has joined")
	}
	w.awaitEvent("InstanceRemovalWaiting", "instance-renamed", `it is node "instance-victim"`, "oc annotate")

	evil.claim("192.0.2.112", "192.0.2.113", off)
	evil.annotate(map[string]any{configure.InstanceAnnotation: off, hosts.PinAnnotation: pins.Data[off], node.RemoveAnnotation: "force"})
	w.annotate("instance-renamed", configure.InstanceAnnotation, "192.0.2.113")
	w.annotate("instance-renamed", node.RemoveAnnotation, "force")
	for name, entry := range map[string]string{"aaa-attacker": "192.0.2.111", "instance-renamed": "192.0.2.114"} {
		eventually(t, "the forced removal of "+name, func() bool { return !w.hasNode(name) && !w.pinned(entry) })
		w.awaitEvent("InstanceTeardown", name, "was not cleaned up", `C:\k and the services containerd, kubelet`, "fix: ")
	}
	ofMachine()
	ofInstance()
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(pins), pins))
	if pins.Data[off] == "" {
		t.Error("the key that a person has pinned for another host is forgotten")
	}
	if renamed.Status("kubelet") != plan.ServiceRunning || !maps.Equal(renamed.Starts(), starts) {
		t.Errorf("a host that says that it is another one was changed: %v, before %v", renamed.Starts(), starts)
	}
	all, err := w.login().Records.LiveRecords(t.Context())
	must(t, err)
	ids := slices.DeleteFunc(all.IDs(), func(id record.ID) bool { r, _ := all.RecordByID(id); return r.Node == "" })
	if len(ids) != 2 {
		t.Errorf("records of Nodes: %v", ids)
	}
}

// endAgent ends the node agent of a host, as one of an earlier version that cannot remove everything itself.
func (w *world) endAgent(name string) {
	w.t.Helper()
	must(w.t, w.machines[name].StopService(w.t.Context(), bundle.AgentService))
	r, err := published.DecodeReport(w.node(name).Annotations[published.ReportAnnotation])
	must(w.t, err)
	r.Features = slices.DeleteFunc(r.Features, func(f published.Feature) bool { return f == published.FeatureRemove })
	text, err := r.Encode()
	must(w.t, err)
	w.annotate(name, published.ReportAnnotation, text)
}
