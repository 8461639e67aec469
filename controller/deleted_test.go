package controller

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/status"
)

// confirm waits until a deletion is reported, sees that the bundle stays, and confirms: another bundle is published, and the confirmation is used up.
func (r *running) confirm(input published.Input, before bundle.Digest) published.Desired {
	r.t.Helper()
	shown := r.condition(status.InputsPresent, metav1.ConditionFalse)
	confirmation := "wmco confirm --all --input " + string(input)
	if shown.Reason != status.ReasonDeleted || !strings.Contains(shown.Message, confirmation) || !strings.Contains(shown.Message, "1 node ") {
		r.t.Errorf("%+v", shown)
	}
	if now, err := published.DecodeDesired(r.node().Annotations[published.DesiredAnnotation]); err != nil || now.Bundle != before || !slices.Contains(now.Inputs, input) {
		r.t.Errorf("bundle %s of %v is published, %s before the deletion: %v", now.Bundle.Short(), now.Inputs, before.Short(), err)
	}
	r.annotate(published.ConfirmAnnotation, string(input))
	after := r.desired(before)
	if slices.Contains(after.Inputs, input) {
		r.t.Errorf("the new bundle is made from %v", after.Inputs)
	}
	r.condition(status.InputsPresent, metav1.ConditionTrue)
	return after
}

// mirrorSets returns the mirror sets of all kinds, as they are created again.
func (r *running) mirrorSets() []unstructured.Unstructured {
	r.t.Helper()
	var all []unstructured.Unstructured
	for _, kind := range []string{"config.openshift.io/v1 ImageDigestMirrorSet", "config.openshift.io/v1 ImageTagMirrorSet", "operator.openshift.io/v1alpha1 ImageContentSourcePolicy"} {
		version, name, _ := strings.Cut(kind, " ")
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(version)
		list.SetKind(name + "List")
		if err := r.List(r.t.Context(), list); err != nil {
			r.t.Fatal(err)
		}
		for _, u := range list.Items {
			unstructured.RemoveNestedField(u.Object, "metadata", "resourceVersion")
			unstructured.RemoveNestedField(u.Object, "metadata", "uid")
			all = append(all, u)
		}
	}
	return all
}

// checkDeleted: all mirror sets go, come back, and go for good; then the instances.
func checkDeleted(t *testing.T, r *running) {
	first := r.desired("")
	sets := r.mirrorSets()
	if len(sets) < 2 || !slices.Contains(first.Inputs, published.InputMirrors) {
		t.Fatalf("%d mirror sets, a bundle made from %v", len(sets), first.Inputs)
	}
	remove := func(list []unstructured.Unstructured) {
		t.Helper()
		for i := range list {
			if err := r.Delete(t.Context(), list[i].DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
	}
	restore := func(list []unstructured.Unstructured) {
		for i := range list {
			if err := r.Create(t.Context(), list[i].DeepCopy()); err != nil {
				t.Error(err)
			}
		}
	}
	remove(sets)
	r.condition(status.InputsPresent, metav1.ConditionFalse)
	r.event(gather.OperatorNamespace, status.ReasonDeleted, operatorName)
	restore(sets)
	r.condition(status.InputsPresent, metav1.ConditionTrue)
	if back := r.desired(""); back.Bundle != first.Bundle {
		t.Errorf("bundle %s, %s before the deletion", back.Bundle.Short(), first.Bundle.Short())
	}
	remove(sets)
	defer func() {
		restore(sets)
		if err := r.eventually("the first bundle", func() bool {
			d, err := published.DecodeDesired(r.node().Annotations[published.DesiredAnnotation])
			return err == nil && d.Bundle == first.Bundle
		}); err != nil {
			t.Error(err)
		}
	}()
	none := r.confirm(published.InputMirrors, first.Bundle)
	checkInstances(t, r, none.Bundle)
}

// checkInstances: the node is of an instance, whose entry goes with the ConfigMap. It keeps the bundle of an instance, and gets other changes.
func checkInstances(t *testing.T, r *running, before bundle.Digest) {
	r.annotate(published.InstanceAnnotation, "10.0.140.21")
	t.Cleanup(func() { r.annotate(published.InstanceAnnotation, "") })
	entries := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-instances"}}
	if err := r.Get(t.Context(), client.ObjectKeyFromObject(entries), entries); err != nil {
		t.Fatal(err)
	}
	if err := r.Delete(t.Context(), entries); err != nil {
		t.Fatal(err)
	}
	defer func() {
		entries.ResourceVersion, entries.UID = "", ""
		if err := r.Create(t.Context(), entries); err != nil {
			t.Error(err)
		}
	}()
	if shown := r.condition(status.InputsPresent, metav1.ConditionFalse); !strings.Contains(shown.Message, published.RemoveAnnotation+"=true") {
		t.Errorf("%+v", shown)
	}
	if now := r.desired(""); now.Bundle != before {
		t.Errorf("bundle %s is published, %s while the entry was there", now.Bundle.Short(), before.Short())
	}
	set := mirrorSet("meanwhile", "quay.io")
	if err := r.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	other := r.desired(before)
	if got := r.registries(other); !slices.Contains(got, "quay.io") {
		t.Errorf("the registries are %q", got)
	}
	if err := r.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	// The confirmation of before was for one deletion.
	if shown := r.condition(status.InputsPresent, metav1.ConditionFalse); r.node().Annotations[published.ConfirmAnnotation] != "" {
		t.Errorf("%+v", shown)
	}
	if err := r.eventually("the question about the mirrors", func() bool {
		return strings.Contains(r.condition(status.InputsPresent, metav1.ConditionFalse).Message, "wmco confirm --all --input mirrors")
	}); err != nil {
		t.Error(err)
	}
	if now := r.desired(""); now.Bundle != other.Bundle {
		t.Errorf("bundle %s is published, %s before the deletion", now.Bundle.Short(), other.Bundle.Short())
	}
}
