package steps

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAPatchHasWhatAStepChanges: it is what the library finds out by comparing whole Nodes, with the version of the Node that was decided from.
func TestAPatchHasWhatAStepChanges(t *testing.T) {
	before := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "win-a", ResourceVersion: "7", Annotations: map[string]string{"same": "s", "changed": "c", "removed": "r", "emptied": "e"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "os"}}},
	}
	for name, edit := range map[string]func(*corev1.Node){
		"an annotation":          func(n *corev1.Node) { n.Annotations["changed"] = "d" },
		"annotations and cordon": func(n *corev1.Node) { n.Annotations["added"], n.Spec.Unschedulable = "a", true },
		"one is removed":         func(n *corev1.Node) { delete(n.Annotations, "removed") },
		"one is emptied":         func(n *corev1.Node) { n.Annotations["emptied"] = "" },
		"a cordon alone":         func(n *corev1.Node) { n.Spec.Unschedulable = true },
	} {
		for _, pair := range [][2]*corev1.Node{{before, before.DeepCopy()}, {before.DeepCopy(), before}} {
			changed := pair[1]
			if changed == before {
				changed = pair[0]
			}
			edit(changed)
			got, err := patchOf(pair[0], pair[1])
			if err != nil {
				t.Fatal(err)
			}
			after := pair[1].DeepCopy()
			want := client.MergeFromWithOptions(pair[0], client.MergeFromWithOptimisticLock{})
			if diff := cmp.Diff(patchContent(t, want, after), patchContent(t, got, after)); diff != "" || got.Type() != types.MergePatchType {
				t.Errorf("%s: %s (-library +own):\n%s", name, got.Type(), diff)
			}
		}
	}
}

// patchContent returns what a patch changes. That nothing is schedulable any more, and that it is again, can be written in two ways.
func patchContent(t *testing.T, p client.Patch, after *corev1.Node) map[string]any {
	t.Helper()
	text, err := p.Data(after)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]any{}
	if err := json.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	if spec, ok := content["spec"].(map[string]any); ok && spec["unschedulable"] == nil {
		spec["unschedulable"] = false
	}
	metadata, _ := content["metadata"].(map[string]any)
	if list, ok := metadata["annotations"].(map[string]any); ok && len(list) == 0 {
		delete(metadata, "annotations")
	}
	return content
}
