package jointest_test

import (
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/gather"
)

// asOperator is a client with the permissions of the operator.
func (w *world) asOperator() client.Client {
	w.t.Helper()
	c, err := client.New(w.as(impersonated()), client.Options{Scheme: w.Scheme()})
	must(w.t, err)
	return c
}

// as returns the configuration of another user.
func (w *world) as(who rest.ImpersonationConfig) *rest.Config {
	if w.memory != nil {
		return w.memory.configOf(who)
	}
	config := rest.CopyConfig(w.admin)
	config.Impersonate = who
	return config
}

// anonymous returns the configuration of a client without credentials.
func (w *world) anonymous() *rest.Config {
	if w.memory != nil {
		return w.memory.anonymous()
	}
	return rest.AnonymousClientConfig(w.admin)
}

// machineSet creates a MachineSet until the end of the test.
func (w *world) machineSet(name string) *machinev1beta1.MachineSet {
	w.t.Helper()
	set := &machinev1beta1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: name}}
	w.create(set)
	return set
}

// owned is a Machine of a MachineSet, which machine-api removes only when its host is gone.
func (w *world) owned(set *machinev1beta1.MachineSet, name, address string) *machinev1beta1.Machine {
	w.t.Helper()
	m := w.machineObject(name, address, "machine.machine.openshift.io")
	before := m.DeepCopy()
	m.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: machinev1beta1.GroupVersion.String(), Kind: "MachineSet", Name: set.Name, UID: set.UID, Controller: new(true),
	}}
	must(w.t, w.Patch(w.t.Context(), m, client.MergeFrom(before)))
	return m
}

// isDeleting reports whether a Machine was deleted.
func (w *world) isDeleting(name string) bool {
	w.t.Helper()
	var m machinev1beta1.Machine
	err := w.Get(w.t.Context(), client.ObjectKey{Namespace: "openshift-machine-api", Name: name}, &m)
	if apierrors.IsNotFound(err) {
		return true
	}
	must(w.t, err)
	return m.DeletionTimestamp != nil
}

// remove is what machine-api does at the end.
func (w *world) remove(m *machinev1beta1.Machine) {
	w.t.Helper()
	must(w.t, w.Patch(w.t.Context(), m.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	eventually(w.t, "the end of Machine "+m.Name, func() bool {
		return apierrors.IsNotFound(w.Get(w.t.Context(), client.ObjectKeyFromObject(m), &machinev1beta1.Machine{}))
	})
}

// replaced is how many Machines of a MachineSet were replaced in a row.
func (w *world) replaced(set string) string {
	w.t.Helper()
	var cm corev1.ConfigMap
	must(w.t, client.IgnoreNotFound(w.Get(w.t.Context(), client.ObjectKey{Namespace: gather.OperatorNamespace, Name: "windows-machine-replacements"}, &cm)))
	number, _, _ := strings.Cut(cm.Data[set], " ")
	return number
}
