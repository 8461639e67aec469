package olmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wmco/deploy/olm"
)

// TestFromOLMToManifests: the commands of docs/takeover.md remove the existing operator that OLM has installed, and install ours without it.
// Nothing of ours goes with what Kubernetes then still collects.
func TestFromOLMToManifests(t *testing.T) {
	w := newWorld(t)
	w.subscribe(subscription{namespace: namespace, source: catalogExisting})
	w.awaitInstalled(namespace, "11.0.0")
	manifests, err := exec.CommandContext(t.Context(), "go", "run", "wmco/deploy/kustomize/cmd/manifests", filepath.Join("..", "..", "..", "deploy"), imageOf(first), "").Output()
	must(t, err)
	const file = "windows-machine-config-operator-0.1.0-install.yaml"
	must(t, os.WriteFile(filepath.Join(w.folder, file), manifests, 0o600))
	w.shell(w.block(takeover, "Taking over", "LABEL="))
	for _, o := range []struct{ kind, name string }{{"Subscription", subscriptionName}, {"ClusterServiceVersion", nameOf("11.0.0")}} {
		w.awaitGone(o.kind, namespace, o.name)
	}
	checked := []struct{ kind, namespace, name string }{
		{"Deployment", namespace, olm.Package}, {"ServiceAccount", namespace, olm.Package}, {"Service", namespace, "windows-exporter"},
		{"Role", namespace, "prometheus-k8s"}, {"RoleBinding", namespace, "prometheus-k8s"}, {"PrometheusRule", namespace, "windows-prometheus-k8s-rules"},
		{"ClusterRole", "", olm.Package}, {"ClusterRoleBinding", "", olm.Package},
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		for _, o := range checked {
			have := w.get(o.kind, o.namespace, o.name)
			if have == nil {
				t.Fatalf("%s %s is gone", o.kind, o.name)
			}
			if owners := have.GetOwnerReferences(); len(owners) > 0 {
				t.Fatalf("%s %s is of %v", o.kind, o.name, owners)
			}
		}
	}
	if image := containerOf(w.get("Deployment", namespace, olm.Package))["image"]; image != imageOf(first) {
		t.Errorf("the image is %v", image)
	}
	w.shell(w.block(takeover, "Removing this operator", "oc delete -f "+file))
	w.shell(w.block(takeover, "Removing this operator", "oc delete secret windows-user-data"))
	w.shell(strings.Join([]string{
		"oc delete clusterrole,clusterrolebinding " + agent + " system-wicd-nodes",
		"oc delete operators.operators.coreos.com --all",
	}, "\n"))
	w.checkNothingLeft()
}
