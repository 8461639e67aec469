package olmtest

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"wmco/deploy/olm"
)

// TestOLMTakesOver: a Subscription of the existing operator gets our catalog, and OLM replaces the operator; then everything is removed
// with the commands of docs/takeover.md.
func TestOLMTakesOver(t *testing.T) {
	w := newWorld(t)
	w.subscribe(subscription{namespace: namespace, source: catalogExisting})
	w.awaitInstalled(namespace, "11.0.0")
	before := w.get("Deployment", namespace, olm.Package)
	w.follow(namespace, catalogFirst)
	w.awaitInstalled(namespace, first)
	w.awaitGone("ClusterServiceVersion", namespace, nameOf("11.0.0"))
	if w.unpacked.Load() == 0 {
		t.Error("no Job has unpacked the bundle")
	}
	if got := w.text("ClusterServiceVersion", namespace, nameOf(first), "spec", "replaces"); got != nameOf("11.0.0") {
		t.Errorf("it replaces %q", got)
	}
	w.checkDeployment(before, first)
}

// checkDeployment checks that the Deployment of before runs a release of ours.
func (w *world) checkDeployment(before *unstructured.Unstructured, version string) {
	w.t.Helper()
	have := w.get("Deployment", namespace, olm.Package)
	strategy, _, _ := unstructured.NestedString(have.Object, "spec", "strategy", "type")
	if have.GetUID() != before.GetUID() || strategy != "Recreate" {
		w.t.Errorf("another Deployment, or its strategy is %q", strategy)
	}
	if image := containerOf(have)["image"]; image != imageOf(version) {
		w.t.Errorf("the image is %v", image)
	}
}

func containerOf(deployment *unstructured.Unstructured) map[string]any {
	list, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	return list[0].(map[string]any)
}
