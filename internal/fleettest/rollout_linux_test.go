package fleettest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/hosttest/simulation"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/executor"
	"wmco/controller/gather"
	"wmco/controller/rollout"
	"wmco/internal/testenv"
)

// observer watches the Nodes, and knows what a rollout did at most at one moment. It asks no operator.
type observer struct {
	mu    sync.Mutex
	nodes map[string]corev1.Node
	// restarting is how many nodes restarted services at once, away how many the rollout had cordoned.
	restarting, away int
	// told are the bundles that each node was told of.
	told map[string]map[bundle.Digest]bool
}

// watch observes until the end of the test.
func (f *fleet) watch(t *testing.T) *observer {
	t.Helper()
	c, err := client.NewWithWatch(f.plane.Config, client.Options{})
	must(t, err)
	o := &observer{nodes: map[string]corev1.Node{}, told: map[string]map[bundle.Digest]bool{}}
	w, err := c.Watch(t.Context(), &corev1.NodeList{}, client.MatchingLabels{corev1.LabelOSStable: "windows"})
	must(t, err)
	t.Cleanup(w.Stop)
	go func() {
		for e := range w.ResultChan() {
			if n, ok := e.Object.(*corev1.Node); ok {
				o.see(*n)
			}
		}
	}()
	return o
}

func (o *observer) see(n corev1.Node) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes[n.Name] = n
	if d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation]); err == nil {
		if o.told[n.Name] == nil {
			o.told[n.Name] = map[bundle.Digest]bool{}
		}
		o.told[n.Name][d.Bundle] = true
	}
	restarting, away := 0, 0
	for _, n := range o.nodes {
		d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
		r, unread := published.DecodeReport(n.Annotations[published.ReportAnnotation])
		if err == nil && unread == nil && d.MaxImpact == bundle.ImpactRestart && (r.Desired != d.Bundle || r.State == published.StateApplying) {
			restarting++
		}
		if n.Annotations[published.CordonAnnotation] != "" {
			away++
		}
	}
	o.restarting, o.away = max(o.restarting, restarting), max(o.away, away)
}

// begin forgets what was.
func (o *observer) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.restarting, o.away, o.told = 0, 0, map[string]map[bundle.Digest]bool{}
}

// most returns what was the most since then, and who was told of another bundle than before.
func (o *observer) most(before map[string]bundle.Digest) (restarting, away int, told []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, bundles := range o.told {
		for b := range bundles {
			if b != before[name] && !slices.Contains(told, name) {
				told = append(told, name)
			}
		}
	}
	return o.restarting, o.away, told
}

// settings are the operator's.
func (f *fleet) settings(t *testing.T, text string) {
	t.Helper()
	f.put(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+gather.OperatorNamespace+`, name: windows-machine-config}, data: {config.yaml: "`+text+`"}}`)
}

const limits = `rollout: {settle: 0s, maxParallel: 2, maxUnavailable: 1}`

// checkBadSetting: the kubelet refuses a setting that the operator does not know to be wrong. The canary rolls back, the others never
// learn of it, and a correct setting reaches all, two at a time.
func (f *fleet) checkBadSetting(t *testing.T) {
	o, before, r := f.watch(t), f.bundles(t), f.read(t)
	f.settings(t, `{`+limits+`, kubelet: {maxPods: 100, imageGCLowThresholdPercent: 90}}`)
	var note string
	stopped := func() bool {
		notes := f.fleetNotes(t, executor.EventRolloutStopped)
		if len(notes) > 0 {
			note = notes[0]
		}
		return len(notes) > 0
	}
	// The kubelet may take two minutes to become healthy, which is as long as a test waits.
	if testenv.Eventually(t.Context(), "the end of the time that the kubelet has", stopped) != nil {
		eventually(t, "a rollout that has stopped", stopped)
	}
	for _, text := range []string{"the canary", "rolled back", `file C:\k\kubelet.conf`, "ConfigMap/" + gather.OperatorNamespace + "/windows-machine-config", "fix: "} {
		if !strings.Contains(note, text) {
			t.Errorf("the event %q lacks %q", note, text)
		}
	}
	f.rendered(t)
	_, _, told := o.most(before)
	if len(told) != 1 {
		t.Fatalf("%q were told of the setting", told)
	}
	for _, m := range f.machines {
		if got := m.since(t, r.machines[m.name]); m.name != told[0] && len(got.Starts)+len(got.Files)+got.Logins > 0 {
			t.Errorf("%s: %+v", m.name, got)
		}
	}
	if n := f.node(t, told[0]); n.Spec.Unschedulable || n.Labels[corev1.LabelOSStable] == "" {
		t.Errorf("%s is cordoned", told[0])
	}
	o.begin()
	f.settings(t, `{`+limits+`, kubelet: {maxPods: 90}}`)
	f.followed(t, r)
	f.rest(t)
	restarting, away, told := o.most(before)
	if len(told) != size || restarting > 2 || away > 0 {
		t.Errorf("%q were told, %d restarted at once, %d were cordoned", told, restarting, away)
	}
	for _, m := range f.machines {
		if got := m.since(t, r.machines[m.name]); got.Boots+got.Logins > 0 || got.Starts["kubelet"] == 0 {
			t.Errorf("%s: %+v", m.name, got)
		}
	}
	if len(f.fleetNotes(t, executor.EventRolloutResumed))+len(f.fleetNotes(t, executor.EventRolloutDone)) == 0 {
		t.Error("no event says that the rollout went on")
	}
}

// checkKept: an administrator's cordon is kept, and a paused node is left alone until it is not paused any more.
func (f *fleet) checkKept(t *testing.T) {
	before, r := f.bundles(t), f.read(t)
	cordoned, paused := f.machines[1].name, f.machines[2].name
	f.edit(t, cordoned, `{"spec":{"unschedulable":true}}`)
	f.edit(t, paused, `{"metadata":{"annotations":{"`+published.PausedAnnotation+`":""}}}`)
	f.put(t, `{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: kept},
  spec: {imageDigestMirrors: [{source: ghcr.io/example, mirrors: ["mirror.example.com:5000/example"]}]}}`)
	eventually(t, "the change on all nodes but one", func() bool {
		now, done := f.bundles(t), 0
		for _, n := range f.nodes(t) {
			if now[n.Name] != before[n.Name] && isCurrent(n) {
				done++
			}
		}
		return done == size-1
	})
	if f.bundles(t)[paused] != before[paused] {
		t.Error("the paused node was told")
	}
	if n := f.node(t, cordoned); !n.Spec.Unschedulable || n.Annotations[published.CordonAnnotation] != "" {
		t.Error("the administrator's cordon is gone")
	}
	f.edit(t, paused, `{"metadata":{"annotations":{"`+published.PausedAnnotation+`":null}}}`)
	f.followed(t, r)
	f.edit(t, cordoned, `{"spec":{"unschedulable":null}}`)
	f.rest(t)
}

// checkDrains: two hosts have lost a feature, which needs a boot. One node after the other is drained, boots and is given back. A
// PodDisruptionBudget that allows nothing is named, and waited for.
func (f *fleet) checkDrains(t *testing.T) {
	o, r := f.watch(t), f.read(t)
	lost := f.machines[1:3]
	labels := map[string]string{"app": "guarded"}
	for _, m := range lost {
		f.runPod(t, "web-"+m.name, m.name, labels)
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "guard"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: new(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
	}}
	must(t, f.Create(t.Context(), budget))
	t.Cleanup(func() { must(t, client.IgnoreNotFound(f.Delete(context.Background(), budget))) })
	for _, m := range lost {
		must(t, m.Edit(t.Context(), func(s *simulation.State) { delete(s.Settings, simulation.SettingKey(bundle.KindFeature, "Containers")) }))
		// The agent starts again: it compares at once.
		must(t, m.StopService(t.Context(), bundle.AgentService))
		must(t, m.StartService(t.Context(), bundle.AgentService))
	}
	var blocked []string
	eventually(t, "an event about what blocks the drain", func() bool {
		blocked = nil
		for _, m := range lost {
			blocked = append(blocked, f.notes(t, executor.EventDrainBlocked, m.name)...)
		}
		return len(blocked) > 0
	})
	if !strings.Contains(blocked[0], "PodDisruptionBudget guard") || !strings.Contains(blocked[0], "default/web-win-") {
		t.Errorf("the event is %q", blocked[0])
	}
	held := 0
	for _, m := range lost {
		n := f.node(t, m.name)
		if n.Annotations[published.CordonAnnotation] == published.CordonedForRollout {
			held++
			if !n.Spec.Unschedulable || n.Annotations[rollout.ScaleDownAnnotation] != "true" || m.since(t, r.machines[m.name]).Boots > 0 {
				t.Errorf("%s: %v", m.name, n.Annotations)
			}
		}
	}
	if held != 1 {
		t.Errorf("%d nodes are held", held)
	}
	must(t, f.Delete(t.Context(), budget))
	eventually(t, "two nodes that have booted and are given back", func() bool {
		for _, m := range lost {
			n := f.node(t, m.name)
			if m.Boots() != r.machines[m.name].Boots+1 || !isCurrent(*n) || n.Spec.Unschedulable || n.Annotations[published.CordonAnnotation] != "" || n.Annotations[rollout.ScaleDownAnnotation] != "" {
				return false
			}
		}
		return true
	})
	if _, away, _ := o.most(nil); away != 1 {
		t.Errorf("%d nodes were cordoned at once", away)
	}
	for _, m := range f.machines {
		if got := m.since(t, r.machines[m.name]); got.Logins > 0 || !slices.Contains(lost, m) && got.Boots+len(got.Starts) > 0 {
			t.Errorf("%s: %+v", m.name, got)
		}
	}
	f.rest(t)
}

// runPod runs a pod on a node.
func (f *fleet) runPod(t *testing.T, name, node string, labels map[string]string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: labels}, Spec: corev1.PodSpec{
		NodeName: node, TerminationGracePeriodSeconds: new(int64(1)), Containers: []corev1.Container{{Name: "web", Image: "mcr.microsoft.com/windows/nanoserver:ltsc2022"}},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, AutomountServiceAccountToken: new(false),
	}}
	must(t, f.Create(t.Context(), pod))
	t.Cleanup(func() {
		must(t, client.IgnoreNotFound(f.Delete(context.Background(), pod, client.GracePeriodSeconds(0))))
	})
	eventually(t, "a pod that runs", func() bool {
		must(t, f.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
		return pod.Status.Phase == corev1.PodRunning
	})
}

// edit changes a Node, as oc patch does.
func (f *fleet) edit(t *testing.T, node, patch string) {
	t.Helper()
	must(t, f.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// fleetNotes are the texts of the events about all nodes, which are on the operator's Deployment, with a reason.
func (f *fleet) fleetNotes(t *testing.T, reason string) []string {
	t.Helper()
	var list eventsv1.EventList
	must(t, f.List(t.Context(), &list, client.InNamespace(gather.OperatorNamespace)))
	var notes []string
	for _, e := range list.Items {
		if e.Reason == reason && e.Regarding.Kind == "Deployment" {
			notes = append(notes, e.Note)
		}
	}
	return notes
}
