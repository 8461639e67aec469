package fleettest

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/rollout/drains"
	"wmco/controller/windowsnode"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/observer"
)

// settings are the operator's.
func (f *fleet) settings(t *testing.T, text string) {
	t.Helper()
	f.put(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+gather.OperatorNamespace+`, name: windows-machine-config}, data: {config.yaml: "`+text+`"}}`)
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
			if now[n.Name] != before[n.Name] && observer.IsCurrent(n) {
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
			blocked = append(blocked, f.notes(t, drains.EventDrainBlocked, m.name)...)
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
			if !n.Spec.Unschedulable || n.Annotations[windowsnode.ScaleDownAnnotation] != "true" || m.since(t, r.machines[m.name]).Boots > 0 {
				t.Errorf("%s: %v", m.name, n.Annotations)
			}
		}
	}
	if held > 1 {
		t.Errorf("%d nodes are held at once", held)
	}
	must(t, f.Delete(t.Context(), budget))
	eventually(t, "two nodes that have booted and are given back", func() bool {
		for _, m := range lost {
			n := f.node(t, m.name)
			if m.Boots() != r.machines[m.name].Boots+1 || !observer.IsCurrent(*n) || n.Spec.Unschedulable || n.Annotations[published.CordonAnnotation] != "" || n.Annotations[windowsnode.ScaleDownAnnotation] != "" {
				return false
			}
		}
		return true
	})
	if _, away, _ := o.MostSinceBegin(nil); away != 1 {
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
	must(t, f.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, mergePatch(patch)))
}

func mergePatch(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }

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
