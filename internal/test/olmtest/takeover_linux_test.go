package olmtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"wmco/deploy/olm"
)

const (
	takeover  = "docs/takeover.md"
	windowsOS = "windows"
	winNode   = "win-1"
	joining   = "windowsmachineconfig.openshift.io/joining"
)

// TestOLMTakesOver: a Subscription of the existing operator gets our catalog, and OLM replaces the operator, which works with the account and
// the rights that OLM made. A node that joins holds up the next release. Then everything is removed with the commands of docs/takeover.md.
func TestOLMTakesOver(t *testing.T) {
	w := newWorld(t)
	w.subscribe(subscription{namespace: namespace, source: catalogExisting})
	w.awaitInstalled(namespace, "11.0.0")
	// What the existing operator makes at run time.
	must(t, w.Create(t.Context(), newObject("v1", "ConfigMap", namespace, "windows-services-11.0.0")))
	must(t, w.Create(t.Context(), newObject("v1", "Secret", namespace, agent)))
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
	o := w.operate()
	o.awaitUpgradeable("True")
	w.checkWhatTheExistingOperatorLeaves()

	w.checkHeldUpgrade(o, before)
	w.removeByThePage()
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
		w.t.Errorf("the image is %v, want that of %s", image, version)
	}
}

func containerOf(deployment *unstructured.Unstructured) object {
	list, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	return list[0].(object)
}

// checkWhatTheExistingOperatorLeaves compares the page with OLM: the account of its agent and its cluster-wide roles stay, until the commands
// of the page remove them.
func (w *world) checkWhatTheExistingOperatorLeaves() {
	w.t.Helper()
	names := []struct{ kind, namespace, name string }{
		{"ServiceAccount", namespace, agent}, {"ClusterRole", "", agent}, {"ClusterRoleBinding", "", agent}, {"ClusterRole", "", "system-wicd-nodes"}, {"ClusterRoleBinding", "", "system-wicd-nodes"},
	}
	for _, n := range names {
		if w.get(n.kind, n.namespace, n.name) == nil {
			w.t.Errorf("%s %s is gone with the existing operator, and %s says that it stays", n.kind, n.name, takeover)
		}
	}
	w.shell(w.block(takeover, "What the existing operator leaves", "oc delete clusterrole"))
	for _, n := range append(names, []struct{ kind, namespace, name string }{{"Role", namespace, agent}, {"Secret", namespace, agent}, {"ConfigMap", namespace, "windows-services-11.0.0"}}...) {
		if w.get(n.kind, n.namespace, n.name) != nil {
			w.t.Errorf("%s %s is left after the commands of %s", n.kind, n.name, takeover)
		}
	}
	for _, o := range existingBundle("11.0.0") {
		kind, name := o["kind"].(string), o["metadata"].(object)["name"].(string)
		in := namespace
		if strings.HasPrefix(kind, "Cluster") && kind != "ClusterServiceVersion" {
			in = ""
		}
		if !w.ours(kind, name) && w.get(kind, in, name) != nil {
			w.t.Errorf("%s %s of the existing operator's bundle is left after the commands of %s", kind, name, takeover)
		}
	}
}

// ours reports whether the first release brings an object too.
func (w *world) ours(kind, name string) bool {
	w.t.Helper()
	_, err := os.Stat(filepath.Join(w.bundles[bundleImageOf(first)], "manifests", name+"_"+strings.ToLower(kind)+".yaml"))
	return err == nil
}

// checkHeldUpgrade upgrades to the second release while a node joins: OLM changes the objects around the operator at once, and the operator
// when the node has joined.
func (w *world) checkHeldUpgrade(o *operator, before *unstructured.Unstructured) {
	w.t.Helper()
	must(w.t, w.createNode(w.t.Context(), winNode, windowsOS))
	w.annotate(winNode, object{joining: "true"})
	o.awaitUpgradeable("False")
	w.follow(namespace, catalogSecond)
	w.await(second+" waits for the operator", func() bool { return w.phase(namespace, second) == "Pending/OperatorConditionNotUpgradeable" })
	w.await("the InstallPlan is executed all the same", func() bool { return w.plan(namespace, second, "Complete") != "" })
	time.Sleep(3 * time.Second)
	if phase := w.phase(namespace, second); !strings.HasPrefix(phase, "Pending/") {
		w.t.Errorf("while a node joins, %s is %s", second, phase)
	}
	w.checkDeployment(before, first)
	o.checkRights()
	w.annotate(winNode, object{joining: nil})
	o.awaitUpgradeable("True")
	o.checkRights()
	o.stop()
	w.awaitInstalled(namespace, second)
	w.awaitGone("ClusterServiceVersion", namespace, nameOf(first))
	w.checkDeployment(before, second)
	o = w.operate()
	o.awaitUpgradeable("True")
	o.checkRights()
	o.stop()
	w.deleteNode(winNode)
}

// removeByThePage removes the operator with the commands of the page, and checks that nothing is left.
func (w *world) removeByThePage() {
	w.t.Helper()
	const heading = "Removing this operator"
	w.shell(w.checkLabel() + w.block(takeover, heading, "$LABEL"))
	w.shell(w.block(takeover, heading, "oc delete secret windows-user-data"))
	w.checkNothingLeft()
}

// checkNothingLeft compares the cluster with that before the operator was installed.
func (w *world) checkNothingLeft() {
	w.t.Helper()
	var left []string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		if left = w.left(); len(left) == 0 {
			return
		}
	}
	w.t.Errorf("left after the commands of %s:\n%s", takeover, strings.Join(left, "\n"))
}

// checkLabel returns the line of the page with OLM's label, which must select the installed objects.
func (w *world) checkLabel() string {
	w.t.Helper()
	line, _, _ := strings.Cut(w.block(takeover, "Taking over", "LABEL="), "\n")
	want := 1
	for _, csv := range w.list("ClusterServiceVersion", namespace) {
		if phase, _, _ := unstructured.NestedString(csv.Object, "status", "phase"); phase == "Succeeded" {
			want++
		}
	}
	selected := strings.Fields(w.shell(line + "\noc get subscription,clusterserviceversion -n " + namespace + " -l $LABEL -o name"))
	if len(selected) < want || !slices.ContainsFunc(selected, func(s string) bool { return strings.HasPrefix(s, "subscription") }) {
		w.t.Errorf("the label of %s selects %v, want %d objects", takeover, selected, want)
	}
	return line + "\n"
}
