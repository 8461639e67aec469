package machine

import (
	"context"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/base"
	"wmco/controller/configure"
)

// A Machine of OpenShift may be a copy of one of the Cluster API (status.authoritativeAPI; enhancement
// converting-machine-api-to-cluster-api of github.com/openshift/enhancements). What is deleted is the object that
// counts:
//
//	MachineAPI, or no value   the Machine
//	ClusterAPI                Machine.cluster.x-k8s.io of the same name in openshift-cluster-api; the copy goes with it
//	Migrating                 none, until one of the others is there

// groupClusterAPI is the API group of the Cluster API.
const groupClusterAPI = "cluster.x-k8s.io"

// findAuthority returns the object that is deleted to delete a Machine, as the API server has it, or why none may be.
func (m *Machines) findAuthority(ctx context.Context, machine *machinev1beta1.Machine) (object client.Object,
	why string, err error) {
	switch machine.Status.AuthoritativeAPI {
	case "", machinev1beta1.MachineAuthorityMachineAPI:
		return machine, "", nil
	case machinev1beta1.MachineAuthorityClusterAPI:
		return m.findOriginal(ctx, machine)
	case machinev1beta1.MachineAuthorityMigrating:
		return nil, "it is being moved to another API (status.authoritativeAPI is Migrating); it is retried", nil
	}
	return nil, fmt.Sprintf("this operator does not know the API %q of its status.authoritativeAPI; fix: %s",
		machine.Status.AuthoritativeAPI, configure.FixByDeletion(machine)), nil
}

// findOriginal returns the Machine of the Cluster API that a Machine is a copy of, or why it is not deleted.
func (m *Machines) findOriginal(ctx context.Context, machine *machinev1beta1.Machine) (object client.Object,
	why string, err error) {
	mapping, err := m.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: groupClusterAPI, Kind: "Machine"})
	if meta.IsNoMatchError(err) {
		return nil, "it is a copy of a Machine of the Cluster API, which the cluster does not serve", nil
	}
	if err != nil {
		return nil, "", err
	}
	list := base.NewList(mapping.GroupVersionKind)
	err = m.Live.List(ctx, list, client.InNamespace(configure.ClusterAPINamespace))
	if apierrors.IsForbidden(err) {
		return nil, m.explainRefusal(machine, err), nil
	}
	if err != nil {
		return nil, "", err
	}
	i := slices.IndexFunc(list.Items, func(u unstructured.Unstructured) bool { return u.GetName() == machine.Name })
	if i < 0 {
		return nil, fmt.Sprintf("it is a copy of a Machine of the Cluster API, and %s has none of its name; fix: "+
			"see the condition Synchronized of the Machine", configure.ClusterAPINamespace), nil
	}
	original := &list.Items[i]
	owner := slices.IndexFunc(original.GetOwnerReferences(), isClusterAPISet)
	switch {
	case original.GetDeletionTimestamp() != nil:
		return nil, whyDeleting, nil
	case owner < 0:
		return nil, "no MachineSet of the Cluster API owns it, so nothing would create another one", nil
	case !isSameInstance(machine, original):
		return nil, fmt.Sprintf("the Machine of the Cluster API with its name has another providerID; fix: see the "+
			"condition Synchronized of the Machine, and delete the right one in %s", configure.ClusterAPINamespace), nil
	}
	// Its copy may not say so yet.
	if other, ok := deletedSibling(metadataOf(list.Items), original.GetOwnerReferences()[owner].UID, machine.Name); ok {
		return nil, describeSibling(other), nil
	}
	return original, "", nil
}

func isClusterAPISet(o metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	return err == nil && gv.Group == groupClusterAPI && isMachineSet(o)
}

// isSameInstance reports whether both Machines are of one instance of the cloud, as far as they have one.
func isSameInstance(machine *machinev1beta1.Machine, original *unstructured.Unstructured) bool {
	id, _, _ := unstructured.NestedString(original.Object, "spec", "providerID")
	return id == "" || machine.Spec.ProviderID == nil || *machine.Spec.ProviderID == "" ||
		*machine.Spec.ProviderID == id
}

// explainRefusal explains why a Machine could not be deleted. The right to delete Machines of the Cluster API is in
// deploy/cluster-api, which not every cluster has: the commands give it.
func (m *Machines) explainRefusal(machine *machinev1beta1.Machine, err error) string {
	if !apierrors.IsForbidden(err) || machine.Status.AuthoritativeAPI != machinev1beta1.MachineAuthorityClusterAPI {
		return err.Error()
	}
	const name = "windows-machine-config-operator-machines"
	return fmt.Sprintf("it is a copy of a Machine of the Cluster API, and the operator may not delete that one; fix: "+
		"oc -n %[1]s create role %[2]s --verb=list,delete --resource=machines.%[3]s && oc -n %[1]s create "+
		"rolebinding %[2]s --role=%[2]s --serviceaccount=%[4]s:windows-machine-config-operator",
		configure.ClusterAPINamespace, name, groupClusterAPI, m.Replacements.Namespace)
}
