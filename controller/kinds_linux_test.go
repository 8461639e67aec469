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

	"wmco/bundle/reason"
	"wmco/controller/status"
	"wmco/internal/test/testenv"
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
	cluster.Config(t) // without a control plane the whole test is skipped
	var r *running
	t.Run("without the kind", func(hidden *testing.T) {
		cluster.Without(hidden, tagMirrors+".config.openshift.io")
		r = start(t)
		r.desired("")
	})
	before := r.desired("")
	set := tagMirrorSet("late", "late.example.com")
	if err := r.eventually("the kind", func() bool { return r.Create(t.Context(), set) == nil }); err != nil {
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
			t.Errorf("%q is missing: %s: %s", text, refused.Reason, refused.Message)
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

// TestTheKindsOfMirrorsAreDeletedWhileTheOperatorRuns: with their definitions all mirror sets go, which is a deletion that waits for a confirmation.
// What is published stays, and is wanted again when they are back.
func TestTheKindsOfMirrorsAreDeletedWhileTheOperatorRuns(t *testing.T) {
	cluster.Load(t, filepath.Join("..", "deploy", "crd"))
	r := start(t)
	before := r.desired("")
	r.condition(status.InputsPresent, metav1.ConditionTrue)
	sets := r.mirrorSets()
	t.Run("without the kinds", func(hidden *testing.T) {
		cluster.Without(hidden, "imagedigestmirrorsets.config.openshift.io", tagMirrors+".config.openshift.io", "imagecontentsourcepolicies.operator.openshift.io")
		if shown := r.condition(status.InputsPresent, metav1.ConditionFalse); shown.Reason != status.ReasonDeleted {
			t.Errorf("%s: %s", shown.Reason, shown.Message)
		}
		if now := r.desired(""); now.Bundle != before.Bundle {
			t.Errorf("bundle %s is published, %s before", now.Bundle.Short(), before.Bundle.Short())
		}
	})
	for i := range sets {
		if err := r.eventually("the kind", func() bool { return client.IgnoreAlreadyExists(r.Create(t.Context(), sets[i].DeepCopy())) == nil }); err != nil {
			t.Fatal(err)
		}
	}
	r.condition(status.InputsPresent, metav1.ConditionTrue)
	if now := r.desired(""); now.Bundle != before.Bundle {
		t.Errorf("bundle %s is published, %s before", now.Bundle.Short(), before.Bundle.Short())
	}
	if got := r.registries(r.desired("")); !slices.Contains(got, "base.example.com") {
		t.Errorf("the registries are %q", got)
	}
}

// TestARightToWriteThatIsTakenAway while the operator runs is reported, keeps nothing else waiting, and is used as soon as it is given back.
func TestARightToWriteThatIsTakenAway(t *testing.T) {
	cluster.Load(t, filepath.Join("..", "deploy", "crd"))
	r := start(t)
	before := r.desired("")
	set := func(rules []rbacv1.PolicyRule) {
		t.Helper()
		var role rbacv1.ClusterRole
		if err := r.Get(t.Context(), client.ObjectKey{Name: operatorName}, &role); err != nil {
			t.Fatal(err)
		}
		role.Rules = rules
		if err := r.Update(t.Context(), &role); err != nil {
			t.Fatal(err)
		}
	}
	var role rbacv1.ClusterRole
	if err := r.Get(t.Context(), client.ObjectKey{Name: operatorName}, &role); err != nil {
		t.Fatal(err)
	}
	set(slices.DeleteFunc(slices.Clone(role.DeepCopy().Rules), func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Resources, "nodes") && slices.Contains(rule.Verbs, "patch")
	}))
	t.Cleanup(func() { _ = r.Delete(context.Background(), mirrorSet("rights", "rights.example.com")) })
	if err := r.Create(t.Context(), mirrorSet("rights", "rights.example.com")); err != nil {
		t.Fatal(err)
	}
	shown := ""
	if err := r.eventually("the refusal in the status", func() bool {
		c := r.condition(status.RolledOut, metav1.ConditionFalse)
		shown = c.Reason + ": " + c.Message
		return c.Reason == status.ReasonRolloutFailed && strings.Contains(c.Message, "writing Node "+nodeName) && strings.Contains(c.Message, "forbidden")
	}); err != nil {
		t.Fatalf("%v: %s", err, shown)
	}
	if c := r.condition(status.Published, metav1.ConditionTrue); c.Reason != status.ReasonPublished {
		t.Errorf("%s: %s", c.Reason, c.Message)
	}
	set(role.Rules)
	if got := r.registries(r.desired(before.Bundle)); !slices.Contains(got, "rights.example.com") {
		t.Errorf("the registries are %q", got)
	}
}
