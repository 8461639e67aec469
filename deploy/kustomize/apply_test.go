package kustomize

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/manifests"
)

var server testenv.Environment

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

func shipped(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	list, err := Build("..")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func id(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + client.ObjectKeyFromObject(o).String()
}

// TestEveryManifestIsInTheKustomization: a manifest that is in no list is not installed.
func TestEveryManifestIsInTheKustomization(t *testing.T) {
	var want, got []string
	folders, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if !f.IsDir() || slices.Contains([]string{"olm", "hostnetwork", "cluster-api", "without-machine-api", "dashboard", "kustomize"}, f.Name()) {
			continue // no manifests, and optional ones
		}
		list, err := manifests.Read(filepath.Join("..", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			if m.GetKind() != "Component" && m.GetKind() != "Kustomization" { // the list of the folder itself
				want = append(want, id(m.Unstructured))
			}
		}
	}
	for _, o := range shipped(t) {
		got = append(got, id(o))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-in the folders +in the kustomization):\n%s", diff)
	}
}

// TestTheProgramHasTheFlags: the arguments of the Deployment are those of the program.
func TestTheProgramHasTheFlags(t *testing.T) {
	i := slices.IndexFunc(shipped(t), func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	containers, _, err := unstructured.NestedSlice(shipped(t)[i].Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	args, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	if err != nil || len(args) < 2 {
		t.Fatalf("args %q: %v", args, err)
	}
	run := func(more ...string) error {
		// Flags are read from the left, so --help comes after all others.
		cmd := exec.CommandContext(t.Context(), "go", slices.Concat([]string{"run", "wmco/cmd/wmco"}, args, more, []string{"--help"})...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	if err := run(); err != nil {
		t.Error(err)
	}
	if run("--no-such-flag") == nil {
		t.Error("an unknown flag is accepted")
	}
}

// installer returns the rules of a user who may apply the manifests, and nothing that the manifests do not give to others. An API
// server refuses roles with more than their author has, unless the author may escalate.
func installer(t *testing.T, list []*unstructured.Unstructured) []testenv.Rule {
	t.Helper()
	rules := []testenv.Rule{{PolicyRule: rbacv1.PolicyRule{
		APIGroups: []string{"", "apps", rbacv1.GroupName, "apiextensions.k8s.io", "admissionregistration.k8s.io", "networking.k8s.io", monitoring},
		Resources: []string{
			"namespaces", "serviceaccounts", "services", "deployments", "roles", "rolebindings", "clusterroles", "clusterrolebindings", "customresourcedefinitions",
			"servicemonitors", "prometheusrules", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations", "networkpolicies",
		},
		Verbs: []string{"get", "create", "patch"},
	}}}
	for _, o := range list {
		if !strings.HasSuffix(o.GetKind(), "Role") {
			continue
		}
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			t.Fatal(err)
		}
		for _, r := range role.Rules {
			rules = append(rules, testenv.Rule{Namespace: o.GetNamespace(), PolicyRule: r})
		}
	}
	return rules
}

// apply applies the objects as `kubectl apply -k --server-side` does, with unknown fields refused.
func apply(ctx context.Context, c client.Client, list []*unstructured.Unstructured) error {
	c = client.WithFieldValidation(c, metav1.FieldValidationStrict)
	var failed []error
	for _, o := range list {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("installer")); err != nil {
			failed = append(failed, fmt.Errorf("applying %s: %w", id(o), err))
		}
	}
	return errors.Join(failed...)
}

// monitoring is the group of the Prometheus operator.
const monitoring = "monitoring.coreos.com"

// remove removes the objects at the end of the test. Namespaces stay: without controllers, nothing could empty them.
func remove(t *testing.T, list []*unstructured.Unstructured) {
	t.Helper()
	c := server.Client(t)
	t.Cleanup(func() {
		for _, o := range slices.Backward(list) {
			if o.GetKind() == "Namespace" {
				continue
			}
			if err := c.Delete(context.Background(), o.DeepCopy()); client.IgnoreNotFound(err) != nil {
				t.Errorf("removing %s: %v", id(o), err)
			}
		}
	})
}

// prepare creates the namespaces: that of the operator, and those that OpenShift has.
func prepare(t *testing.T, list []*unstructured.Unstructured) {
	t.Helper()
	serveMonitoring(t, newestPrometheusOperator(t))
	remove(t, list)
	createNamespaces(t, list)
}

// createNamespaces creates the namespaces of objects.
func createNamespaces(t *testing.T, list []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range list {
		if o.GetNamespace() == "" {
			continue
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.GetNamespace()}}
		if err := server.Client(t).Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

func TestApply(t *testing.T) {
	list := shipped(t)
	prepare(t, list)
	c := testenv.NewClient(t, server.User(t, "installer", installer(t, list)...))
	if err := apply(t.Context(), c, list); err != nil {
		t.Fatal(err)
	}
	before := versions(t, list)
	if err := apply(t.Context(), c, list); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, versions(t, list)); diff != "" {
		t.Errorf("applied again (-before +after):\n%s", diff)
	}
}

// versions returns the resource versions of objects, but those of definitions, whose status changes when they are served.
func versions(t *testing.T, list []*unstructured.Unstructured) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, o := range list {
		if o.GetKind() == "CustomResourceDefinition" {
			continue
		}
		have := o.DeepCopy()
		if err := server.Client(t).Get(t.Context(), client.ObjectKeyFromObject(o), have); err != nil {
			t.Fatal(err)
		}
		all[id(o)] = have.GetResourceVersion()
	}
	return all
}

// TestNobodyGivesMoreThanTheyHave: a user who lacks one right of the operator cannot install it, so TestApply has shown that the list
// of rights is complete.
func TestNobodyGivesMoreThanTheyHave(t *testing.T) {
	list := shipped(t)
	prepare(t, list)
	rules := installer(t, list)
	i := slices.IndexFunc(rules, func(r testenv.Rule) bool { return slices.Contains(r.Resources, "signers") })
	if i < 0 {
		t.Fatal("no rule about signers")
	}
	c := testenv.NewClient(t, server.User(t, "helper", slices.Delete(rules, i, i+1)...))
	err := apply(t.Context(), c, list)
	if err == nil || !strings.Contains(err.Error(), "attempting to grant RBAC permissions not currently held") || !strings.Contains(err.Error(), "applying ClusterRole /windows-machine-config-operator") {
		t.Errorf("without a right that the operator has: %v", err)
	}
}

// with returns the objects of deploy with a component of it.
func with(t *testing.T, component string) []*unstructured.Unstructured {
	t.Helper()
	deploy, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Rel(folder, deploy)
	if err != nil {
		t.Fatal(err)
	}
	text := "resources: [" + base + "]\ncomponents: [" + base + "/" + component + "]\n"
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := Build(folder)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestNamespacesThatNotEveryClusterHas: an object of a namespace that does not exist cannot be applied, so the Roles for user data are where
// the namespaces are.
func TestNamespacesThatNotEveryClusterHas(t *testing.T) {
	for component, want := range map[string][]string{
		"hostnetwork":         {"openshift-config", "openshift-machine-api", "openshift-machine-config-operator"},
		"cluster-api":         {"openshift-cluster-api", "openshift-cluster-api", "openshift-config", "openshift-machine-api", "openshift-machine-config-operator"},
		"without-machine-api": {"openshift-config", "openshift-machine-config-operator"},
	} {
		for _, kind := range []string{"Role", "RoleBinding"} {
			var got []string
			for _, o := range with(t, component) {
				if o.GetKind() == kind && o.GetNamespace() != "openshift-windows-machine-config-operator" {
					got = append(got, o.GetNamespace())
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", component, kind, diff)
			}
		}
	}
}

func TestHostNetwork(t *testing.T) {
	list := with(t, "hostnetwork")
	prepare(t, list)
	if err := apply(t.Context(), server.Client(t), list); err != nil {
		t.Fatal(err)
	}
	var pod corev1.PodTemplateSpec
	for _, o := range list {
		if o.GetKind() == "Deployment" {
			content, _, _ := unstructured.NestedMap(o.Object, "spec", "template")
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !pod.Spec.HostNetwork || pod.Spec.DNSPolicy != corev1.DNSClusterFirstWithHostNet || pod.Annotations["openshift.io/required-scc"] != "hostnetwork-v2" {
		t.Errorf("the pod is %+v %v", pod.Spec, pod.Annotations)
	}
}
