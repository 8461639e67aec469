package controller

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/status"
	"wmco/internal/test/testenv"
	"wmco/render/reason"
)

const tagMirrors = "imagetagmirrorsets"

func tagMirrorSet(name, from string) *unstructured.Unstructured {
	set := mirrorSet(name, from)
	set.SetKind("ImageTagMirrorSet")
	set.Object["spec"] = map[string]any{"imageTagMirrors": []any{map[string]any{"source": from, "mirrors": []any{"mirror.example.com"}}}}
	return set
}

// TestAKindThatAppearsIsUsedWithoutARestart.
func TestAKindThatAppearsIsUsedWithoutARestart(t *testing.T) {
	var r *running
	t.Run("without the kind", func(hidden *testing.T) {
		cluster.Without(hidden, tagMirrors+".config.openshift.io")
		r = start(t)
		r.desired("")
	})
	before := r.desired("")
	set := tagMirrorSet("late", "late.example.com")
	if err := testenv.Eventually(t.Context(), "the kind", func() bool { return r.Create(t.Context(), set) == nil }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Delete(context.Background(), set) })
	if got := r.registries(r.desired(before.Bundle)); !slices.Contains(got, "late.example.com") {
		t.Errorf("the registries are %q", got)
	}
}

// TestAKindThatIsRefusedIsSaid: what needs it waits, and goes on when the right is given. Nothing else ends.
func TestAKindThatIsRefusedIsSaid(t *testing.T) {
	cluster.Load(t, filepath.Join("..", "deploy", "crd"))
	var role rbacv1.ClusterRole
	r := startWith(t, func(o *Options) {
		c := cluster.Client(t)
		if err := c.Get(t.Context(), client.ObjectKey{Name: operatorName}, &role); err != nil {
			t.Error(err)
		}
		less := role.DeepCopy()
		for i := range less.Rules {
			less.Rules[i].Resources = slices.DeleteFunc(less.Rules[i].Resources, func(name string) bool { return name == tagMirrors })
		}
		if err := c.Update(t.Context(), less); err != nil {
			t.Error(err)
		}
		operator, err := client.New(o.Config, client.Options{})
		if err != nil {
			t.Error(err)
		}
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("config.openshift.io/v1")
		list.SetKind("ImageTagMirrorSetList")
		if err := testenv.Eventually(t.Context(), "the refusal", func() bool { return apierrors.IsForbidden(operator.List(t.Context(), list)) }); err != nil {
			t.Error(err)
		}
	})
	refused := r.condition(status.InputsAccepted, metav1.ConditionFalse)
	for _, text := range []string{tagMirrors, `verbs: ["list", "watch"]`, "fix: "} {
		if refused.Reason != reason.Forbidden || !strings.Contains(refused.Message, text) {
			t.Errorf("it says nothing of %q: %s: %s", text, refused.Reason, refused.Message)
		}
	}
	var less rbacv1.ClusterRole
	if err := r.Get(t.Context(), client.ObjectKeyFromObject(&role), &less); err != nil {
		t.Fatal(err)
	}
	less.Rules = role.Rules
	if err := r.Update(t.Context(), &less); err != nil {
		t.Fatal(err)
	}
	r.condition(status.InputsAccepted, metav1.ConditionTrue)
	r.desired("")
}
