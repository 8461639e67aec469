package jointest_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/layers"
	"wmco/controller/node"
	"wmco/controller/status"
	"wmco/controller/windowsnode/record"
	"wmco/internal/test/faults"
)

// ledgerCopy is what the node agent writes beside its logs.
const ledgerCopy = `C:\var\log\wicd\` + bundle.LedgerCopy

// app is a ReplicaSet on Windows nodes, on one of them if that is named, otherwise spread evenly over those that accept pods.
func (w *world) app(name string, replicas int32, on string) {
	w.t.Helper()
	labels := map[string]string{"app": name}
	where := map[string]string{corev1.LabelOSStable: "windows"}
	if on != "" {
		where[corev1.LabelHostname] = on
	}
	var spread []corev1.TopologySpreadConstraint
	if on == "" {
		spread = evenlySpread(labels)
	}
	grace := int64(1)
	w.create(&appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/app:1"}}, NodeSelector: where, TerminationGracePeriodSeconds: &grace,
				TopologySpreadConstraints: spread,
				Tolerations:               []corev1.Toleration{{Key: "os", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
			},
		}},
	})
	w.t.Cleanup(func() {
		must(w.t, w.DeleteAllOf(context.Background(), &corev1.Pod{}, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels(labels), client.GracePeriodSeconds(0)))
	})
}

// evenlySpread has the scheduler put the pods with these labels on all nodes alike. It need not: by default, it may put all on one node. A node that
// is cordoned is left out.
func evenlySpread(app map[string]string) []corev1.TopologySpreadConstraint {
	return []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: app},
		NodeTaintsPolicy: new(corev1.NodeInclusionPolicyHonor),
	}}
}

// daemon is a DaemonSet on Windows nodes. Its pods are no reason not to remove a node.
func (w *world) daemon(name string) {
	w.t.Helper()
	labels := map[string]string{"app": name}
	w.create(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/app:1"}}, NodeSelector: map[string]string{corev1.LabelOSStable: "windows"},
				Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			},
		}},
	})
}

// running returns how many pods of an app run on a node, on any if that is empty.
func (w *world) running(app, node string) int {
	w.t.Helper()
	var pods corev1.PodList
	must(w.t, w.List(w.t.Context(), &pods, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": app}))
	return len(slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || node != "" && p.Spec.NodeName != node
	}))
}

// layers are the names of the Secrets with layers.
func (w *world) layers() []string {
	w.t.Helper()
	var list corev1.SecretList
	must(w.t, w.List(w.t.Context(), &list, client.InNamespace(gather.OperatorNamespace), client.HasLabels{published.LayerLabel}))
	var names []string
	for _, s := range list.Items {
		names = append(names, s.Name)
	}
	return names
}

// readers are the users that may read layers.
func (w *world) readers() []string {
	w.t.Helper()
	var b rbacv1.RoleBinding
	must(w.t, w.Get(w.t.Context(), client.ObjectKey{Namespace: gather.OperatorNamespace, Name: layers.Access}, &b))
	var names []string
	for _, s := range b.Subjects {
		names = append(names, s.Name)
	}
	return names
}

// login reads and writes what operators know of hosts.
func (w *world) login() *hosts.Login {
	records := &hosts.Records{Live: w.Client, Client: w.Client, Namespace: gather.OperatorNamespace}
	return &hosts.Login{Live: w.Client, Client: w.Client, Namespace: gather.OperatorNamespace, Records: records}
}

// pinned reports whether the host key of an entry is pinned.
func (w *world) pinned(address string) bool {
	w.t.Helper()
	r, _, err := w.login().Records.GetRecord(w.t.Context(), record.OfEntry(address))
	must(w.t, err)
	return r.HostKey != ""
}

// removeEntry removes an entry of windows-instances, and addEntry adds one.
func (w *world) removeEntry(address string) {
	w.t.Helper()
	w.changeEntries(func(data map[string]string) { delete(data, address) })
}

func (w *world) addEntry(address string) {
	w.t.Helper()
	w.changeEntries(func(data map[string]string) { data[address] = "username=Administrator" })
}

func (w *world) changeEntries(change func(data map[string]string)) {
	w.t.Helper()
	var cm corev1.ConfigMap
	must(w.t, w.Get(w.t.Context(), client.ObjectKey{Namespace: gather.OperatorNamespace, Name: configure.InstancesName}, &cm))
	change(cm.Data)
	must(w.t, w.Update(w.t.Context(), &cm))
}

// annotateAs runs the command of a fix about a Node.
func (w *world) annotateAs(note string) {
	w.t.Helper()
	m := regexp.MustCompile(`oc annotate (?:--overwrite )?node (\S+) ([^\s=]+)=(\w+)`).FindStringSubmatch(note)
	if m == nil {
		w.t.Fatalf("no command in %q", note)
	}
	w.annotate(m[1], m[2], m[3])
}

// annotate gives a Node an annotation, also while others write it.
func (w *world) annotate(node, key, value string) {
	w.t.Helper()
	must(w.t, w.tryAnnotate(node, key, value))
}

// tryAnnotate is annotate for a Node that may be gone.
func (w *world) tryAnnotate(node, key, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	return w.Patch(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.MergePatchType, patch))
}

// endsServices waits until the machine has no services: what removes everything ends itself after it has reported.
func (m *joinedMachine) endsServices(t *testing.T) {
	t.Helper()
	eventually(t, "the end of the services of "+m.Name(), func() bool {
		after, err := m.Snapshot(t.Context())
		must(t, err)
		return len(after.Services) == 0
	})
}

// isEmpty checks that nothing of the operator is left on a host but its node agent. Features of Windows stay, and the keys with
// which people log in.
func (m *joinedMachine) isEmpty(t *testing.T) {
	t.Helper()
	m.endsServices(t)
	after, err := m.Snapshot(t.Context())
	must(t, err)
	for path, file := range after.Files {
		agent := strings.HasPrefix(strings.ToLower(path), `c:\windows\wmco\wmco-node-`) || strings.HasPrefix(strings.ToLower(path), `c:\windows\wmco-removal-`)
		// On Windows it is a link, to a file that is gone: hybrid-overlay-node keeps its certificates with k8s.io/client-go/util/certificate.
		link := path == `C:\k\cni\config\ovnkube-client-current.pem`
		if file.Kind == plan.FileRegular && !agent && !link {
			t.Errorf("%s still has the file %s", m.Name(), path)
		}
	}
	for name := range after.Settings {
		if !strings.HasPrefix(name, string(bundle.KindFeature)+" ") && !strings.HasPrefix(name, strings.ToLower(string(bundle.KindAuthorizedKey))+" ") {
			t.Errorf("%s still has the setting %s", m.Name(), name)
		}
	}
}

// saysOfEntry checks that the Events of ConfigMap windows-instances about an entry have these reasons and types: its Node no longer exists, and `oc describe
// configmap windows-instances` shows what refers to its UID.
func (w *world) saysOfEntry(entry string, want map[string]string) {
	w.t.Helper()
	var instances corev1.ConfigMap
	must(w.t, w.Get(w.t.Context(), client.ObjectKey{Namespace: gather.OperatorNamespace, Name: "windows-instances"}, &instances))
	got := map[string]string{}
	eventually(w.t, "the Events of the entry "+entry, func() bool {
		clear(got)
		for _, e := range w.allEvents(client.InNamespace(gather.OperatorNamespace)) {
			if _, ok := want[e.Reason]; ok && e.Regarding.Kind == "ConfigMap" && e.Regarding.UID == instances.UID && e.Regarding.FieldPath == "data["+entry+"]" && strings.HasPrefix(e.Note, entry+" (node ") {
				got[e.Reason] = got[e.Reason] + e.Type
			}
		}
		return len(got) == len(want)
	})
	for reason, kinds := range got {
		if strings.ReplaceAll(kinds, want[reason], "") != "" {
			w.t.Errorf("Events %s are %s, want %s", reason, kinds, want[reason])
		}
	}
}

// TestARemovedEntryLeavesNothing: the pods move, a budget is honoured, and the host is as it was before.
func TestARemovedEntryLeavesNothing(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("instance-a", "192.0.2.61"), w.machine("instance-b", "192.0.2.62")
	w.instances("192.0.2.61", "192.0.2.62")
	clock := faults.NewClock(t.Context())
	stop := w.operateOn(clock)
	w.allJoin([]string{"instance-a", "instance-b"})
	w.app("app", 4, "")
	w.app("guarded", 1, "instance-a")
	w.daemon("daemon")
	w.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "guard"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}},
	})
	eventually(t, "the pods", func() bool {
		return w.running("app", "instance-a") > 0 && w.running("app", "") == 4 && w.running("guarded", "") == 1 && w.running("daemon", "instance-a") == 1
	})
	starts := b.Starts()
	eventually(t, "the copy of the ledger", func() bool { return strings.Contains(a.Text(ledgerCopy), `C:\\k\\kubelet.conf`) })
	earlier := w.told("instance-a")

	// Its kubelet has cordoned it, and takes the cordon back later.
	kubelet := w.kubelet("instance-a")
	kubelet.cordon(true)
	w.removeEntry("192.0.2.61")
	w.awaitEvent("InstanceRemovalStarted", "instance-a", "cordoned", "its entry was removed")
	w.awaitEvent("InstanceRemovalWaiting", "instance-a", "blocked", "default/guarded-", "PodDisruptionBudget guard")
	eventually(t, "the move of the pods", func() bool { return w.running("app", "instance-b") == 4 })
	if w.running("guarded", "instance-a") != 1 || a.Status("kubelet") != plan.ServiceRunning {
		t.Error("the host was cleaned up before its pods had ended")
	}
	must(t, w.Delete(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "guard"}}))
	// A kubelet that takes its cordon back all the time gets no new pod, and is removed all the same.
	untainted := kubelet.as.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "instance-a"}}, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":null}}`)))
	if !apierrors.IsForbidden(untainted) {
		t.Errorf("a kubelet removes the taints of its Node: %v", untainted)
	}
	eventually(t, "the end of the Node", func() bool {
		kubelet.cordon(false)
		return !w.hasNode("instance-a")
	})
	w.awaitEvent("InstanceTeardown", "instance-a", "cleaned up")
	w.saysOfEntry("192.0.2.61", map[string]string{"InstanceRemovalStarted": corev1.EventTypeNormal, "InstanceRemovalWaiting": corev1.EventTypeWarning, "InstanceTeardown": corev1.EventTypeNormal})
	a.isEmpty(t)
	eventually(t, "the end of the pinned key", func() bool { return !w.pinned("192.0.2.61") })
	eventually(t, "the end of its permission to read layers", func() bool { return slices.Equal(w.readers(), []string{"system:node:instance-b"}) })
	if !w.joined("instance-b") || !w.pinned("192.0.2.62") || !maps.Equal(b.Starts(), starts) {
		t.Errorf("the other instance changed: services were started %v, before %v", b.Starts(), starts)
	}
	// The entry comes back: the host joins again, as a new one.
	w.addEntry("192.0.2.61")
	w.allJoin([]string{"instance-a"})
	// What was signed for the Node of before is refused, also where nothing replaces it at once.
	stop()
	p := w.patcher()
	p.put("instance-a", map[string]any{published.DesiredAnnotation: earlier})
	p.refusal("instance-a", earlier)
	w.operateOn(clock)
	p.restored("instance-a", earlier)
	// The layer of the cluster is collected with the last node. A list without any entry would remove nothing.
	if len(w.layers()) == 0 {
		t.Error("there are no Secrets with layers")
	}
	w.addEntry("192.0.2.199")
	w.removeEntry("192.0.2.61")
	w.removeEntry("192.0.2.62")
	eventually(t, "the end of the layers", func() bool {
		clock.Step(configure.AgainLater) // so long it takes until the operator looks for what no node has
		return !w.hasNode("instance-a") && !w.hasNode("instance-b") && len(w.layers()) == 0
	})
}

// TestTheRemovalOfAHostThatIsOffWaitsUntilItIsForced: it is remembered on the Node, and visible.
func TestTheRemovalOfAHostThatIsOffWaitsUntilItIsForced(t *testing.T) {
	w := newWorld(t)
	off := w.machine("instance-off", "192.0.2.63")
	back := w.machine("instance-back", "192.0.2.64")
	w.machine("instance-stays", "192.0.2.65")
	w.instances("192.0.2.63", "192.0.2.64", "192.0.2.65")
	stop := w.operate()
	w.allJoin([]string{"instance-off", "instance-back", "instance-stays"})
	off.PowerOff()
	back.PowerOff()
	w.removeEntry("192.0.2.63")
	w.removeEntry("192.0.2.64")
	note := w.awaitEvent("InstanceRemovalWaiting", "instance-off", "192.0.2.63", "fix: ", "oc annotate")
	w.awaitEvent("InstanceRemovalWaiting", "instance-back", "192.0.2.64", "fix: ")
	eventually(t, "the removal in the status, with what to do", func() bool {
		h := w.host("instance-off")
		return h.State == nodestate.Degraded && h.Address == "192.0.2.63" && strings.Contains(h.Fix, "oc annotate") && w.condition(status.Degraded).Status == metav1.ConditionTrue
	})
	eventually(t, "the condition with both hosts, and what to do", func() bool {
		c := w.condition(configure.InstancesRemoved)
		return c.Status == metav1.ConditionFalse && c.Reason == configure.ReasonUnreachable && strings.HasPrefix(c.Message, "2 instances cannot be removed: instance-back, instance-off; ") && strings.Contains(c.Message, "fix: ")
	})
	// Another operator remembers it too.
	stop()
	w.operate()
	must(t, back.PowerOn())
	eventually(t, "the end of the Node whose host is back", func() bool { return !w.hasNode("instance-back") })
	back.isEmpty(t)
	if n := w.findNode("instance-off"); n == nil || !n.Spec.Unschedulable || !w.pinned("192.0.2.63") {
		t.Fatal("a host that is off is gone without a word of a person")
	}
	w.annotateAs(note)
	eventually(t, "the end of the Node whose host is off", func() bool { return !w.hasNode("instance-off") })
	eventually(t, "the end of the pinned key", func() bool { return !w.pinned("192.0.2.63") })
	if !w.joined("instance-stays") {
		t.Error("the instance with an entry is gone")
	}
	eventually(t, "the status without it", func() bool {
		return w.host("instance-off").Name == "" && w.condition(configure.InstancesRemoved).Status == metav1.ConditionTrue
	})
}

// TestAnEmptyListRemovesNothing: it is more often a mistake. A person confirms it for each Node.
func TestAnEmptyListRemovesNothing(t *testing.T) {
	w := newWorld(t)
	a, b := w.machine("instance-a", "192.0.2.66"), w.machine("instance-b", "192.0.2.67")
	cm := w.instances("192.0.2.66", "192.0.2.67")
	w.operate()
	w.allJoin([]string{"instance-a", "instance-b"})
	starts := a.Starts()
	must(t, w.Get(t.Context(), client.ObjectKeyFromObject(cm), cm))
	entries := cm.Data
	cm.Data = nil
	must(t, w.Update(t.Context(), cm))
	for _, name := range []string{"instance-a", "instance-b"} {
		w.awaitEvent("RemovalNotConfirmed", name, "has no entry", "fix: ", "oc annotate")
	}
	must(t, w.Delete(t.Context(), cm))
	must(t, w.DeleteAllOf(t.Context(), &corev1.Event{}, client.InNamespace(metav1.NamespaceDefault)))
	if !w.joined("instance-a") || !w.joined("instance-b") || !maps.Equal(a.Starts(), starts) {
		t.Error("instances were changed because their list is empty")
	}
	// One is confirmed, for the other one the list comes back.
	w.annotate("instance-a", node.RemoveAnnotation, "true")
	eventually(t, "the end of the confirmed Node", func() bool { return !w.hasNode("instance-a") })
	a.isEmpty(t)
	delete(entries, "192.0.2.66")
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: configure.InstancesName}, Data: entries})
	if !w.joined("instance-b") || !maps.Equal(b.Starts(), starts) {
		t.Error("the instance that nobody removed was changed")
	}
	// A confirmation that comes now, or is left from before, is not kept for the next mistake.
	w.annotate("instance-b", node.RemoveAnnotation, "true")
	eventually(t, "the annotation is taken back", func() bool {
		n := w.findNode("instance-b")
		return n != nil && n.Annotations[node.RemoveAnnotation] == ""
	})
	w.awaitEvent("RemovalForgotten", "instance-b", "has an entry", "fix: ")
	if !w.joined("instance-b") || !maps.Equal(b.Starts(), starts) {
		t.Error("the instance with an entry was changed")
	}
}

// TestADeletedMachineIsLeftToMachineAPI: it is neither drained nor reached, and its notes are dropped, so that the next one may have
// its address.
func TestADeletedMachineIsLeftToMachineAPI(t *testing.T) {
	w := newWorld(t)
	old := w.machine("machine-old", "192.0.2.68")
	w.machine("instance-a", "192.0.2.69")
	object := w.machineObject("machine-old", "192.0.2.68", "machine.machine.openshift.io")
	w.instances("192.0.2.69")
	w.operate()
	w.allJoin([]string{"machine-old", "instance-a"})
	must(t, w.Delete(t.Context(), object))
	before := w.at.dialed(t, "192.0.2.68")
	// machine-api drains, ends the host, and removes the Node and the Machine.
	old.PowerOff()
	w.setLost("machine-old")
	if n := w.node("machine-old"); n.Spec.Unschedulable || len(n.Finalizers) > 0 {
		t.Errorf("the Node of a deleted Machine is cordoned or held: %v, %v", n.Spec.Unschedulable, n.Finalizers)
	}
	must(t, w.Delete(t.Context(), w.node("machine-old")))
	w.remove(object)
	if got := w.at.dialed(t, "192.0.2.68"); got != before {
		t.Errorf("the host of a deleted Machine was reached %d times", got-before)
	}
	// Another host gets the address.
	w.machine("machine-new", "192.0.2.68")
	w.machineObject("machine-new", "192.0.2.68")
	w.allJoin([]string{"machine-new"})
}
