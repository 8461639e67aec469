package kustomize

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/manifests"
)

// prometheusOperators are folders with a go.mod each: the Prometheus operator of OpenShift 4.18, 4.19 and 4.20, and the newest.
const prometheusOperators = "../../tools/prometheus-operator-*"

// monitoringKinds are the kinds of the Prometheus operator that are shipped.
func monitoringKinds() []string { return []string{"PrometheusRule", "ServiceMonitor"} }

// definitions returns the folder with the definitions of one version of the Prometheus operator. go.sum has its checksum.
func definitions(t *testing.T, folder string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json")
	cmd.Dir = folder
	out, err := cmd.Output()
	var module struct{ Dir, Error string }
	if err := cmp.Or(json.Unmarshal(out, &module), err); err != nil || module.Error != "" {
		t.Skipf("the module of %s is not served: %v %s", folder, err, module.Error)
	}
	return filepath.Join(module.Dir, "example", "prometheus-operator-crd")
}

// serveMonitoring defines the kinds of the Prometheus operator as one of its versions does, and waits until that is served.
func serveMonitoring(t *testing.T, folder string) {
	t.Helper()
	dir := definitions(t, folder)
	for _, kind := range monitoringKinds() {
		plural := strings.ToLower(kind) + "s"
		list, err := manifests.Read(filepath.Join(dir, monitoring+"_"+plural+".yaml"))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d definitions, %v", kind, len(list), err)
		}
		definition, probe := list[0].Unstructured, strings.ReplaceAll(filepath.Base(folder), ".", "")
		addField(t, definition, probe)
		store(t, definition)
		awaitField(t, kind, probe)
	}
}

// addField adds a field of its own to the schema of a definition, by which a test sees that the server uses it.
func addField(t *testing.T, definition *unstructured.Unstructured, name string) {
	t.Helper()
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("%d versions, %v", len(versions), err)
	}
	field := map[string]any{"type": "string"}
	if err := unstructured.SetNestedMap(versions[0].(map[string]any), field, "schema", "openAPIV3Schema", "properties", "spec", "properties", name); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
}

// store creates a definition, or replaces that of another version.
func store(t *testing.T, definition *unstructured.Unstructured) {
	t.Helper()
	c := server.Client(t)
	err := c.Create(t.Context(), definition.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		before := definition.DeepCopy()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(before), before); err != nil {
			t.Fatal(err)
		}
		definition.SetResourceVersion(before.GetResourceVersion())
		err = c.Update(t.Context(), definition)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// awaitField waits until the server knows the field.
func awaitField(t *testing.T, kind, name string) {
	t.Helper()
	probe := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{name: "x"}}}
	probe.SetAPIVersion(monitoring + "/v1")
	probe.SetKind(kind)
	probe.SetName("probe")
	probe.SetNamespace("default")
	c := client.NewDryRunClient(client.WithFieldValidation(server.Client(t), metav1.FieldValidationStrict))
	err := testenv.Eventually(t.Context(), kind+" with the field "+name, func() bool {
		err := c.Create(t.Context(), probe.DeepCopy())
		return err == nil || apierrors.IsInvalid(err) // fields that a ServiceMonitor must have
	})
	if err != nil {
		t.Fatal(err)
	}
}

// everything returns all manifests of deploy, each once.
func everything(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	all := shipped(t)
	for _, component := range []string{"hostnetwork", "cluster-api", "without-machine-api"} {
		all = append(all, with(t, component)...)
	}
	list, err := manifests.Read("../dashboard", "../olm/golden/bundle/manifests")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		o := m.Unstructured
		if o.GetKind() == "ClusterServiceVersion" {
			continue // tools/olm-check has OLM's own validation
		}
		if o.GetNamespace() == "" && !slices.Contains([]string{"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}, o.GetKind()) {
			o.SetNamespace("openshift-windows-machine-config-operator") // OLM decides that
		}
		all = append(all, o)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(o *unstructured.Unstructured) bool {
		text, err := json.Marshal(o)
		before := seen[string(text)]
		seen[string(text)] = true
		return err == nil && before
	})
}

// TestEveryPrometheusOperator: clusters have the definitions of their version. All of deploy is accepted by each, with unknown fields refused as `oc apply`
// does, and keeps every field where they are pruned in silence, as by OLM.
func TestEveryPrometheusOperator(t *testing.T) {
	folders, err := filepath.Glob(prometheusOperators)
	if err != nil || len(folders) < 4 {
		t.Fatalf("%q, %v", folders, err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			serveMonitoring(t, folder)
			list := everything(t)
			createNamespaces(t, list)
			dry := client.NewDryRunClient(server.Client(t))
			if err := apply(t.Context(), dry, list); err != nil {
				t.Error(err)
			}
			for _, o := range list {
				if err := createdWhole(t, dry, o); err != nil {
					t.Errorf("%s: %v", id(o), err)
				}
			}
			t.Run("a field of newer versions is noticed", func(t *testing.T) { checkNewerField(t, folder) })
		})
	}
}

// createdWhole creates an object as OLM does, without validation of fields, and returns an error for a field that it does not have afterwards.
func createdWhole(t *testing.T, dry client.Client, o *unstructured.Unstructured) error {
	t.Helper()
	if o.GetKind() == "CustomResourceDefinition" || o.GetKind() == "Namespace" {
		return nil // it is there before
	}
	created := o.DeepCopy()
	err := client.WithFieldValidation(dry, metav1.FieldValidationIgnore).Create(t.Context(), created)
	if err != nil {
		return err
	}
	return within(o.Object, created.Object, "")
}

// within reports what of want is not in got.
func within(want, got any, path string) error {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		var missing []error
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if _, ok := g[key]; !ok {
				if w[key] != nil && !reflect.ValueOf(w[key]).IsZero() { // zero values are left out
					missing = append(missing, fmt.Errorf("%s.%s is not kept", path, key))
				}
				continue
			}
			missing = append(missing, within(w[key], g[key], path+"."+key))
		}
		return errors.Join(missing...)
	case []any:
		g, _ := got.([]any)
		if len(g) != len(w) {
			return fmt.Errorf("%s has %d items, want %d", path, len(g), len(w))
		}
		var missing []error
		for i := range w {
			missing = append(missing, within(w[i], g[i], fmt.Sprintf("%s[%d]", path, i)))
		}
		return errors.Join(missing...)
	}
	if want != nil && !reflect.DeepEqual(want, got) {
		return fmt.Errorf("%s is %v, want %v", path, got, want)
	}
	return nil
}

// checkNewerField shows that the test would notice spec.serviceDiscoveryRole, which came with 0.86.
func checkNewerField(t *testing.T, folder string) {
	t.Helper()
	i := slices.IndexFunc(shipped(t), func(o *unstructured.Unstructured) bool { return o.GetKind() == "ServiceMonitor" })
	o := shipped(t)[i]
	if err := unstructured.SetNestedField(o.Object, "EndpointSlice", "spec", "serviceDiscoveryRole"); err != nil {
		t.Fatal(err)
	}
	dry := client.NewDryRunClient(server.Client(t))
	strict, kept := apply(t.Context(), dry, []*unstructured.Unstructured{o}), createdWhole(t, dry, o)
	if has := filepath.Base(folder) == "prometheus-operator-0.94"; (strict == nil) != has || (kept == nil) != has {
		t.Errorf("applied: %v, as by OLM: %v", strict, kept)
	}
}

// TestKindsOfOthers: the kinds in deploy are those of Kubernetes, ours, and those that TestEveryPrometheusOperator looks at. Nothing there is of OpenShift's own API.
func TestKindsOfOthers(t *testing.T) {
	for _, o := range everything(t) {
		group, _, _ := strings.Cut(o.GetAPIVersion(), "/")
		own := !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
		if !own && (group != monitoring || !slices.Contains(monitoringKinds(), o.GetKind())) {
			t.Errorf("%s is of %s: test it with the definitions of the oldest and the newest cluster", id(o), o.GetAPIVersion())
		}
	}
}

// newestPrometheusOperator is what the other tests of this package are served.
func newestPrometheusOperator(t *testing.T) string {
	t.Helper()
	folders, err := filepath.Glob(prometheusOperators)
	if err != nil || len(folders) == 0 {
		t.Fatalf("%q, %v", folders, err)
	}
	return slices.Max(folders)
}
