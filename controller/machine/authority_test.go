package machine

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/controller/configure"
	"wmco/internal/test/testenv/manifests"
)

const clusterAPIVersion = groupClusterAPI + "/v1beta2"

// originalKind is a Machine of the Cluster API.
func originalKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: groupClusterAPI, Version: "v1beta2", Kind: "Machine"}
}

// belongsTo has a Machine say which API counts.
func belongsTo(authority machinev1beta1.MachineAuthority) func(*machinev1beta1.Machine) {
	return func(m *machinev1beta1.Machine) {
		m.Spec.ProviderID = new("aws:///" + m.Name)
		m.Status.AuthoritativeAPI = authority
	}
}

// original is the Machine of the Cluster API that a Machine is a copy of. It goes when its controllers have removed the host.
func (o *operator) original(set, name string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	o.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"providerID": "aws:///" + name}}}
	u.SetGroupVersionKind(originalKind())
	u.SetNamespace(configure.ClusterAPINamespace)
	u.SetName(name)
	u.SetUID("uid-of-original")
	u.SetFinalizers([]string{"machine.cluster.x-k8s.io"})
	u.SetOwnerReferences([]metav1.OwnerReference{ownerOf(clusterAPIVersion, set)})
	for _, c := range change {
		c(u)
	}
	must(o.t, o.Create(o.t.Context(), u))
	return u
}

// shippedRole is the Role of deploy/cluster-api about Machines.
func shippedRole(t *testing.T) rbacv1.Role {
	t.Helper()
	list, err := manifests.Read(filepath.Join("..", "..", "deploy", "cluster-api", "machines.yaml"))
	must(t, err)
	var role rbacv1.Role
	i := slices.IndexFunc(list, func(m manifests.Manifest) bool { return m.GetKind() == "Role" })
	must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(list[i].Object, &role))
	return role
}

// permits has the operator do with Machines of the Cluster API what these verbs permit, and nothing else.
func (o *operator) permits(verbs *[]string) {
	check := func(verb string, kind schema.GroupVersionKind) error {
		if kind.Group != groupClusterAPI || slices.Contains(*verbs, verb) {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Group: groupClusterAPI, Resource: "machines"}, "", nil)
	}
	o.intercept(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if err := check("get", object.GetObjectKind().GroupVersionKind()); err != nil {
				return err
			}
			return c.Get(ctx, key, object, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := check("list", list.GetObjectKind().GroupVersionKind()); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			if err := check("delete", object.GetObjectKind().GroupVersionKind()); err != nil {
				return err
			}
			return c.Delete(ctx, object, opts...)
		},
	})
}

// TestACopyOfAMachineIsReplacedByItsOriginal: a Machine that belongs to the Cluster API is a copy, and the Machine of the Cluster API is deleted,
// with the Role of deploy/cluster-api. Where that cannot be, none of the two is deleted, and the Event has the fix.
func TestACopyOfAMachineIsReplacedByItsOriginal(t *testing.T) {
	o := newOperator(t, refusesLogin, originalKind())
	copied := belongsTo(machinev1beta1.MachineAuthorityClusterAPI)
	first, second := o.machine("set", "first", "192.0.2.41", copied), o.machine("set", "second", "192.0.2.42", copied)
	firstOriginal, secondOriginal := o.original("set", "first"), o.original("set", "second")
	var verbs []string
	o.permits(&verbs)
	for _, name := range []string{"first", "second"} {
		o.reconcile(name)
	}
	o.now = 31 * time.Minute

	const command = "fix: oc -n openshift-cluster-api create role windows-machine-config-operator-machines --verb=list,delete --resource=machines.cluster.x-k8s.io && " +
		"oc -n openshift-cluster-api create rolebinding windows-machine-config-operator-machines --role=windows-machine-config-operator-machines " +
		"--serviceaccount=openshift-windows-machine-config-operator:windows-machine-config-operator"
	if got := o.reconcile("first"); o.isDeleting(first) || o.isDeleting(firstOriginal) || !contains(got, "Warning MachineDeletionRestricted", command) {
		t.Errorf("without the right: %q", got)
	}
	verbs = []string{"list"}
	if got := o.reconcile("first"); o.isDeleting(first) || o.isDeleting(firstOriginal) || !contains(got, "Warning MachineDeletionFailed", command) {
		t.Errorf("with the right to list alone: %q", got)
	}
	role := shippedRole(t)
	gives := []rbacv1.PolicyRule{{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"machines"}, Verbs: []string{"list", "delete"}}}
	if diff := cmp.Diff(gives, role.Rules); diff != "" || role.Namespace != configure.ClusterAPINamespace {
		t.Errorf("the Role in %s is not what the command gives (-command +shipped):\n%s", role.Namespace, diff)
	}
	verbs = role.Rules[0].Verbs
	if got := o.reconcile("first"); o.isDeleting(first) || !o.isDeleting(firstOriginal) || !contains(got, "Normal MachineDeleted", "MachineSet set creates another one") {
		t.Errorf("with the right: %q", got)
	}
	// The copy does not say yet that the other one is being deleted.
	if got := o.reconcile("second"); o.isDeleting(second) || o.isDeleting(secondOriginal) || !contains(got, "MachineDeletionRestricted", "first", "one at a time") {
		t.Errorf("while another one is being deleted: %q", got)
	}
	if got := o.replaced("set"); got != "1" {
		t.Errorf("%q replacements are counted", got)
	}
	o.now = 3 * time.Hour
	const fix = "fix: delete the Machine in the Cluster API (oc delete machines.cluster.x-k8s.io second -n openshift-cluster-api)"
	if got := o.reconcile("second"); !contains(got, "Warning MachineSetupFailure MachineTooOld", fix) {
		t.Errorf("what to do about one that is too old: %q", got)
	}
}

// TestWhyACopyIsNotReplaced: nothing is deleted where it is not clear what counts.
func TestWhyACopyIsNotReplaced(t *testing.T) {
	copied := machinev1beta1.MachineAuthorityClusterAPI
	served := []schema.GroupVersionKind{originalKind()}
	for name, tt := range map[string]struct {
		authority machinev1beta1.MachineAuthority
		served    []schema.GroupVersionKind
		// change is the defect of its original; nil has none.
		change func(*unstructured.Unstructured)
		why    string
	}{
		"it is being moved":                   {machinev1beta1.MachineAuthorityMigrating, served, func(*unstructured.Unstructured) {}, "status.authoritativeAPI is Migrating"},
		"an API of which nothing is known":    {"Another", served, func(*unstructured.Unstructured) {}, `this operator does not know the API "Another"`},
		"the cluster has no Cluster API":      {copied, nil, nil, "which the cluster does not serve"},
		"its original is lost":                {copied, served, nil, "openshift-cluster-api has none of its name"},
		"its original is in another instance": {copied, served, func(u *unstructured.Unstructured) { setProviderID(u, "aws:///another") }, "another providerID"},
		"its original is owned by none":       {copied, served, func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) }, "no MachineSet of the Cluster API owns it"},
		"its original is owned by a Machine set of another API": {copied, served, func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{ownerOf(machinev1beta1.GroupVersion.String(), "set")})
		}, "no MachineSet of the Cluster API owns it"},
		"its original is deleted already": {copied, served, func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"delete": "now"}) }, "it is being deleted already"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOperator(t, refusesLogin, tt.served...)
			m := o.machine("set", "machine", "192.0.2.41", belongsTo(tt.authority))
			var original *unstructured.Unstructured
			deleted := false
			if tt.change != nil {
				original = o.original("set", "machine", tt.change)
				if deleted = original.GetLabels()["delete"] != ""; deleted {
					must(t, o.Delete(t.Context(), original))
				}
			}
			o.reconcile("machine")
			o.now = 31 * time.Minute
			if got := o.reconcile("machine"); o.isDeleting(m) || !contains(got, "Warning MachineDeletionRestricted", tt.why) {
				t.Errorf("deleted %t: %q, want %q", o.isDeleting(m), got, tt.why)
			}
			if original != nil && o.isDeleting(original) != deleted {
				t.Error("its original is deleted")
			}
			if got := o.replaced("set"); got != "" {
				t.Errorf("%q replacements are counted", got)
			}
		})
	}
	// A host that has none yet, and one that only one of both has, are no others.
	for _, tt := range []struct{ copied, original string }{{"", "aws:///machine"}, {"aws:///machine", ""}} {
		o := newOperator(t, refusesLogin, served...)
		m := o.machine("set", "machine", "192.0.2.41", belongsTo(copied), func(m *machinev1beta1.Machine) { m.Spec.ProviderID = &tt.copied })
		original := o.original("set", "machine", func(u *unstructured.Unstructured) { setProviderID(u, tt.original) })
		o.reconcile("machine")
		o.now = 31 * time.Minute
		if got := o.reconcile("machine"); o.isDeleting(m) || !o.isDeleting(original) {
			t.Errorf("providerID %q and %q: %q", tt.copied, tt.original, got)
		}
	}
}

func setProviderID(u *unstructured.Unstructured, id string) {
	u.Object["spec"] = map[string]any{"providerID": id}
}

// TestAMachineIsMovedWhileItIsReplaced to the Cluster API and back, each time between the decision and the deletion: neither object is deleted then,
// and it counts as no replacement. The next try deletes the one that counts.
func TestAMachineIsMovedWhileItIsReplaced(t *testing.T) {
	o := newOperator(t, refusesLogin, originalKind())
	m := o.machine("set", "flip", "192.0.2.47", belongsTo(machinev1beta1.MachineAuthorityMachineAPI))
	original := o.original("set", "flip")
	o.reconcile("flip")
	o.now = 31 * time.Minute
	moves := func() {}
	tries := 0
	o.intercept(interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
		tries++
		moves()
		options := (&client.DeleteOptions{}).ApplyOptions(opts)
		if p := options.Preconditions; p == nil || p.UID == nil || *p.UID != object.GetUID() || p.ResourceVersion == nil {
			t.Errorf("the deletion is not of the object that was judged: %+v", p)
		}
		return c.Delete(ctx, object, opts...)
	}})
	for _, to := range []machinev1beta1.MachineAuthority{machinev1beta1.MachineAuthorityMigrating, machinev1beta1.MachineAuthorityMachineAPI, machinev1beta1.MachineAuthorityClusterAPI} {
		moved := false
		moves = func() {
			moved = true
			o.changeStatus("flip", belongsTo(to))
		}
		got := o.reconcile("flip")
		if o.isDeleting(m) || o.isDeleting(original) {
			t.Errorf("moved to %s: deleted: %q", to, got)
		}
		if !moved { // Migrating deletes nothing
			o.changeStatus("flip", belongsTo(to))
		}
	}
	// The original changes.
	moves = func() {
		now := original.DeepCopy()
		must(t, o.WithWatch.Get(t.Context(), client.ObjectKeyFromObject(now), now))
		now.SetLabels(map[string]string{"changed": "now"})
		must(t, o.Update(t.Context(), now))
	}
	if got := o.reconcile("flip"); o.isDeleting(m) || o.isDeleting(original) {
		t.Errorf("the original has changed: deleted: %q", got)
	}
	moves = func() {}
	if got := o.reconcile("flip"); o.isDeleting(m) || !o.isDeleting(original) || o.replaced("set") != "1" || tries < 4 {
		t.Errorf("at rest, after %d tries: %q", tries, got)
	}
}

// TestARepeatedDeletionCounts: the API server has deleted the object and an error came back, so that the request was made again and refused.
func TestARepeatedDeletionCounts(t *testing.T) {
	for name, authority := range map[string]machinev1beta1.MachineAuthority{"a Machine": machinev1beta1.MachineAuthorityMachineAPI, "an original": machinev1beta1.MachineAuthorityClusterAPI} {
		o := newOperator(t, refusesLogin, originalKind())
		o.machine("set", "machine", "192.0.2.41", belongsTo(authority))
		o.original("set", "machine")
		o.intercept(interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			if err := c.Delete(ctx, object, opts...); err != nil {
				return err
			}
			return c.Delete(ctx, object, opts...)
		}})
		o.reconcile("machine")
		o.now = 31 * time.Minute
		if got := o.reconcile("machine"); o.replaced("set") != "1" || !contains(got, "Warning MachineDeletionFailed") {
			t.Errorf("%s: %q replacements are counted, %q", name, o.replaced("set"), got)
		}
	}
}
