package jointest_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/internal/test/testenv"
)

const (
	clusterAPIGroup   = "cluster.x-k8s.io"
	clusterAPIVersion = "v1beta2"
)

// definition is that of a kind of the Cluster API, whatever its objects have.
func definition(kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	version := func(name string) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == clusterAPIVersion,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + clusterAPIGroup},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: clusterAPIGroup, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: plural[:len(plural)-1]},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1beta1"), version(clusterAPIVersion)},
		},
	}
}

// movedMachines has the cluster serve both APIs until the end of the test: Machines say which one counts (feature gate MachineAPIMigration).
func (w *world) movedMachines() {
	w.t.Helper()
	with := runtime.NewScheme()
	must(w.t, apiextensionsv1.AddToScheme(with))
	c, err := client.New(server.ControlPlane(w.t).Config, client.Options{Scheme: with})
	must(w.t, err)
	var machines apiextensionsv1.CustomResourceDefinition
	must(w.t, c.Get(w.t.Context(), client.ObjectKey{Name: "machines.machine.openshift.io"}, &machines))
	changed := machines.DeepCopy()
	for i := range changed.Spec.Versions {
		changed.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["status"].Properties["authoritativeAPI"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	must(w.t, c.Patch(w.t.Context(), changed, client.MergeFrom(&machines)))
	w.t.Cleanup(func() {
		back := changed.DeepCopy()
		back.Spec = machines.Spec
		must(w.t, c.Patch(context.Background(), back, client.MergeFrom(changed)))
	})
	w.clusterAPINamespace()
	for kind, plural := range map[string]string{"Machine": "machines", "MachineSet": "machinesets"} {
		d := definition(kind, plural)
		must(w.t, c.Create(w.t.Context(), d))
		w.t.Cleanup(func() {
			must(w.t, c.Delete(context.Background(), d))
			err := testenv.Eventually(context.Background(), "the end of "+d.Name, func() bool {
				return apierrors.IsNotFound(c.Get(context.Background(), client.ObjectKeyFromObject(d), &apiextensionsv1.CustomResourceDefinition{}))
			})
			must(w.t, err)
		})
	}
}

// original is an object of the Cluster API until the end of the test.
func (w *world) original(kind, name string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	w.t.Helper()
	build := func() *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		u.SetAPIVersion(clusterAPIGroup + "/" + clusterAPIVersion)
		u.SetKind(kind)
		u.SetNamespace("openshift-cluster-api")
		u.SetName(name)
		return u
	}
	var u *unstructured.Unstructured
	eventually(w.t, "kind "+kind+" of the Cluster API", func() bool {
		u = build()
		change(u)
		return w.Create(w.t.Context(), u) == nil
	})
	w.t.Cleanup(func() {
		none := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		must(w.t, client.IgnoreNotFound(w.Patch(context.Background(), u.DeepCopy(), none)))
		must(w.t, client.IgnoreNotFound(w.Delete(context.Background(), u)))
	})
	return u
}

// originalOf is the Machine of the Cluster API that a Machine is a copy of. It goes when its controllers have removed the host.
func (w *world) originalOf(set *unstructured.Unstructured, name string) *unstructured.Unstructured {
	w.t.Helper()
	return w.original("Machine", name, func(u *unstructured.Unstructured) {
		u.SetFinalizers([]string{"machine.cluster.x-k8s.io"})
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: set.GetAPIVersion(), Kind: set.GetKind(), Name: set.GetName(), UID: set.GetUID(), Controller: new(true)}})
		must(w.t, unstructured.SetNestedField(u.Object, "aws:///"+name, "spec", "providerID"))
	})
}

// belongsTo has a Machine say which API counts.
func (w *world) belongsTo(m *machinev1beta1.Machine, authority machinev1beta1.MachineAuthority) {
	w.t.Helper()
	m.Spec.ProviderID = new("aws:///" + m.Name)
	must(w.t, w.Update(w.t.Context(), m))
	eventually(w.t, "the API of Machine "+m.Name, func() bool {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"authoritativeAPI":"`+string(authority)+`"}}`))
		must(w.t, w.Status().Patch(w.t.Context(), m, patch))
		return m.Status.AuthoritativeAPI == authority
	})
}

func (w *world) isOriginalDeleting(u *unstructured.Unstructured) bool {
	w.t.Helper()
	now := u.DeepCopy()
	must(w.t, w.Get(w.t.Context(), client.ObjectKeyFromObject(u), now))
	return now.GetDeletionTimestamp() != nil
}

// TestACopyOfAMachineIsReplacedByItsOriginal: a Machine that belongs to the Cluster API is a copy, and what is deleted is the Machine of the Cluster
// API. Where that cannot be, none of the two is deleted, and the Event says what to do.
func TestACopyOfAMachineIsReplacedByItsOriginal(t *testing.T) {
	w := newWorld(t)
	w.movedMachines()
	r := w.reconciler(refusesLogin)
	set := w.machineSet("set")
	originals := w.original("MachineSet", "set", func(*unstructured.Unstructured) {})
	first, second := w.owned(set, "first", "192.0.2.41"), w.owned(set, "second", "192.0.2.42")
	moving := w.owned(w.machineSet("moving-set"), "moving", "192.0.2.43")
	lost := w.owned(w.machineSet("lost-set"), "lost", "192.0.2.44")
	other := w.owned(w.machineSet("other-set"), "other", "192.0.2.45")
	for m, authority := range map[*machinev1beta1.Machine]machinev1beta1.MachineAuthority{
		first: machinev1beta1.MachineAuthorityClusterAPI, second: machinev1beta1.MachineAuthorityClusterAPI, lost: machinev1beta1.MachineAuthorityClusterAPI,
		other: machinev1beta1.MachineAuthorityClusterAPI, moving: machinev1beta1.MachineAuthorityMigrating,
	} {
		w.belongsTo(m, authority)
	}
	firstOriginal, secondOriginal := w.originalOf(originals, "first"), w.originalOf(originals, "second")
	otherInstance := w.originalOf(w.original("MachineSet", "other-set", func(*unstructured.Unstructured) {}), "other")
	must(t, w.Patch(t.Context(), otherInstance, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"providerID":"aws:///another"}}`))))
	w.original("Machine", "unowned", func(*unstructured.Unstructured) {})
	unowned := w.owned(w.machineSet("unowned-set"), "unowned", "192.0.2.46")
	w.belongsTo(unowned, machinev1beta1.MachineAuthorityClusterAPI)
	for _, name := range []string{"first", "second", "moving", "lost", "other", "unowned"} {
		r.reconcile(name)
	}
	r.late = 31 * time.Minute

	if got := r.reconcile("first"); w.isDeleting("first") || w.isOriginalDeleting(firstOriginal) ||
		!contains(got, "Warning MachineDeletionRestricted", "fix: oc -n openshift-cluster-api create role windows-machine-config-operator-machines --verb=list,delete --resource=machines.cluster.x-k8s.io && ",
			"--serviceaccount=openshift-windows-machine-config-operator:windows-machine-config-operator") {
		t.Errorf("without the right: %q", got)
	}
	server.Load(t, filepath.Join("..", "..", "..", "deploy", "cluster-api", "machines.yaml"))
	for _, c := range []struct{ name, text string }{
		{"moving", "status.authoritativeAPI is Migrating"}, {"lost", "openshift-cluster-api has none of its name"}, {"other", "another providerID"}, {"unowned", "no MachineSet of the Cluster API owns it"},
	} {
		if got := r.reconcile(c.name); w.isDeleting(c.name) || !contains(got, "Warning MachineDeletionRestricted", c.text) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	if w.isOriginalDeleting(otherInstance) {
		t.Error("the Machine of another instance is deleted")
	}
	if got := r.reconcile("first"); w.isDeleting("first") || !w.isOriginalDeleting(firstOriginal) || !contains(got, "Normal MachineDeleted", "MachineSet set creates another one") {
		t.Errorf("with the right: %q", got)
	}
	// The copy does not say yet that the other one is being deleted.
	if got := r.reconcile("second"); w.isOriginalDeleting(secondOriginal) || !contains(got, "MachineDeletionRestricted", "first", "one at a time") {
		t.Errorf("while another one is being deleted: %q", got)
	}
	if got := w.replaced("set"); got != "1" {
		t.Errorf("%q replacements are counted", got)
	}
	r.late = 3 * time.Hour
	if got := r.reconcile("second"); !contains(got, "Warning MachineSetupFailure MachineTooOld", "fix: delete the Machine in the Cluster API (oc delete machines.cluster.x-k8s.io second -n openshift-cluster-api)") {
		t.Errorf("what to do about one that is too old: %q", got)
	}
}
