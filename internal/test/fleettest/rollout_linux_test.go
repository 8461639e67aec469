package fleettest

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/gather"
)

// settings are the operator's.
func (f *fleet) settings(t *testing.T, text string) {
	t.Helper()
	f.put(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: `+gather.OperatorNamespace+`, name: windows-machine-config}, data: {config.yaml: "`+text+`"}}`)
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
