package olmtest

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"wmco/deploy/olm"
)

// TestOLMInstallsForAllNamespaces: in both modes that the bundle supports the operator works with what OLM makes; here each InstallPlan is
// approved by hand.
func TestOLMInstallsForAllNamespaces(t *testing.T) {
	w := newWorld(t)
	w.subscribe(subscription{namespace: namespace, source: catalogFirst, approval: manual, targets: []string{}})
	w.approve(namespace, first)
	w.awaitInstalled(namespace, first)
	deployment := w.get("Deployment", namespace, olm.Package)
	if targets, found, _ := unstructured.NestedString(deployment.Object, "spec", "template", "metadata", "annotations", "olm.targetNamespaces"); !found || targets != "" {
		t.Errorf("the operator is for namespaces %q", targets)
	}
	w.await("the copy in another namespace", func() bool { return w.get("ClusterServiceVersion", "openshift-monitoring", nameOf(first)) != nil })
	o := w.operate()
	o.awaitUpgradeable("True")
	o.checkRights()
	w.follow(namespace, catalogSecond)
	w.approve(namespace, second)
	w.await(second+" is there", func() bool { return w.get("ClusterServiceVersion", namespace, nameOf(second)) != nil })
	w.awaitInstalled(namespace, second)
	o.checkRights()
	o.stop()
	w.awaitGone("ClusterServiceVersion", namespace, nameOf(first))
	w.checkDeployment(deployment, second)
	w.removeByThePage()
}

// TestOLMRefusesOtherNamespaces: the operator is not started for a namespace that is not its own.
func TestOLMRefusesOtherNamespaces(t *testing.T) {
	w := newWorld(t)
	w.subscribe(subscription{namespace: namespace, source: catalogFirst, targets: []string{"openshift-monitoring"}})
	w.await("OLM refuses it", func() bool { return w.phase(namespace, first) == "Failed/UnsupportedOperatorGroup" })
	if w.get("Deployment", namespace, olm.Package) != nil {
		t.Error("OLM refuses the OperatorGroup, and makes a Deployment")
	}
	w.removeByThePage()
}
