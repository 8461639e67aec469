package rbac

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"wmco/controller/base/policies"
	"wmco/deploy/admission"
	"wmco/deploy/kustomize"
	"wmco/deploy/network"
	"wmco/deploy/olm"
	"wmco/internal/test/testenv"
)

// loadBundle is what OLM makes of the bundle: rules for the whole cluster, and its Roles in the operator's namespace.
func loadBundle(t *testing.T, th *thief) {
	t.Helper()
	objects, err := kustomize.Build("..")
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("0", 64)
	bundle, err := olm.Bundle(objects, olm.Release{
		Version: "0.1.0", Image: "registry.example.com/wmco/operator@" + digest, BundleImage: "registry.example.com/wmco/bundle:v0.1.0",
		Maintainer: "Example <maintainers@wmco.example>", Created: time.Date(2026, time.November, 22, 0, 0, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	var csv struct {
		Spec struct {
			Install struct {
				Spec struct {
					ClusterPermissions []struct {
						Rules []rbacv1.PolicyRule `json:"rules"`
					} `json:"clusterPermissions"`
				} `json:"spec"`
			} `json:"install"`
		} `json:"spec"`
	}
	var role rbacv1.Role
	for file, into := range map[string]any{olm.Package + ".clusterserviceversion.yaml": &csv, olm.Package + "_role.yaml": &role} {
		if err := yaml.Unmarshal(bundle["manifests/"+file], into); err != nil {
			t.Fatal(err)
		}
	}
	rules := csv.Spec.Install.Spec.ClusterPermissions[0].Rules
	if len(rules) < 20 || len(role.Rules) < 5 {
		t.Fatalf("%d rules for the cluster, %d for the namespace", len(rules), len(role.Rules))
	}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: olm.Package}}
	name := metav1.ObjectMeta{Name: "olm"}
	th.have(&rbacv1.ClusterRole{ObjectMeta: name, Rules: rules})
	th.have(&rbacv1.ClusterRoleBinding{ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "olm"}, Subjects: subjects})
	name.Namespace = operatorNamespace
	th.have(&rbacv1.Role{ObjectMeta: name, Rules: role.Rules})
	th.have(&rbacv1.RoleBinding{ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "olm"}, Subjects: subjects})
}

// bind has the operator apply its policy with the rights that it has.
func (t *thief) bind() {
	t.t.Helper()
	for _, o := range []client.Object{&admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}} {
		o.SetName(admission.Operator)
		t.t.Cleanup(func() { t.without(o) })
	}
	if err := (policies.Policies{Live: t, Client: t, Namespace: operatorNamespace}).BindOperator(t.t.Context()); err != nil {
		t.t.Fatal(err)
	}
}

// TestUnderOLMThePolicyTakesTheRest: the Roles of other namespaces are rules for the whole cluster there, and the operator applies the policy
// itself.
func TestUnderOLMThePolicyTakesTheRest(t *testing.T) {
	th := newThief(t)
	loadBundle(t, th)
	apply := attempts()[2]
	if apply.name != "apply" {
		t.Fatal(apply.name)
	}
	// The API server forgets the policy of an earlier test some time after it was deleted.
	if err := testenv.Eventually(t.Context(), "the theft without the policy: otherwise the test shows nothing", func() bool {
		who, _ := th.steals(apply, "kube-system", "windows-user-data")
		return who == "system:serviceaccount:kube-system:victim"
	}); err != nil {
		t.Fatal(err)
	}
	th.bind()
	th.awaitPolicy()
	th.robs()
	// Nor a Secret that is no token: only the rule about places refuses it.
	elsewhere := tokenSecret("kube-system", "windows-user-data")
	elsewhere.Type = ""
	if err := apply.try(t.Context(), th, elsewhere); !isPolicy(err) {
		t.Errorf("user data in kube-system: %v", err)
	}
	here := tokenSecret("openshift-machine-api", "windows-user-data")
	here.Type = "Opaque"
	if err := apply.try(t.Context(), th, here); err != nil {
		t.Errorf("user data where Machines are: %v", err)
	}
	th.without(here)
}

// TestPoliciesOfOtherNames: what creates and changes the operator's policies is good for no other one, which could stop every write of the
// cluster.
func TestPoliciesOfOtherNames(t *testing.T) {
	th := newThief(t)
	loadBundle(t, th)
	policy, _ := admission.OperatorSecrets(operatorNamespace)
	policy.Name = "another"
	text, err := json.Marshal(map[string]any{"apiVersion": policy.APIVersion, "kind": policy.Kind, "metadata": map[string]any{"name": policy.Name}, "spec": policy.Spec})
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"apply":  th.Patch(t.Context(), policy.DeepCopy(), client.RawPatch(types.ApplyPatchType, text), client.FieldOwner("thief")),
		"create": th.Create(t.Context(), policy.DeepCopy()),
		"update": th.Update(t.Context(), policy.DeepCopy()),
		"delete": th.Delete(t.Context(), policy.DeepCopy()),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	policy.Name = admission.Operator
	if err := th.Delete(t.Context(), policy); !apierrors.IsForbidden(err) {
		t.Errorf("deleting the operator's: %v", err)
	}
}

// TestUnderOLMThePolicyCanBeUndone, as in docs/security.md: a policy is not asked about policies, so under OLM whoever has the token can
// change the one that binds it. The manifests give no such right.
func TestUnderOLMThePolicyCanBeUndone(t *testing.T) {
	off := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"validationActions":["Audit"]}}`))
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: admission.Operator}}
	t.Run("under OLM", func(t *testing.T) {
		th := newThief(t)
		loadBundle(t, th)
		th.bind()
		if err := th.Patch(t.Context(), binding.DeepCopy(), off); err != nil {
			t.Errorf("the documentation lists that it can be undone: %v", err)
		}
		// The operator restores it when it looks the next time.
		if err := (policies.Policies{Live: th, Client: th, Namespace: operatorNamespace}).BindOperator(t.Context()); err != nil {
			t.Error(err)
		}
		th.awaitPolicy()
	})
	t.Run("with the manifests", func(t *testing.T) {
		cluster.Load(t, ".", filepath.Join("..", "admission"))
		th := newThief(t)
		for _, o := range []client.Object{binding.DeepCopy(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: binding.ObjectMeta}} {
			if err := th.Patch(t.Context(), o, off); !apierrors.IsForbidden(err) {
				t.Errorf("%T: %v", o, err)
			}
		}
		if err := (policies.Policies{Live: th, Client: th, Namespace: operatorNamespace}).BindOperator(t.Context()); err != nil {
			t.Errorf("the policy of the manifests is not the one that the operator looks for: %v", err)
		}
	})
}

// TestUnderOLMTheOperatorLimitsItsPorts: a bundle has no NetworkPolicy, so the operator creates its own, and leaves one alone that administrators have changed.
func TestUnderOLMTheOperatorLimitsItsPorts(t *testing.T) {
	th := newThief(t)
	loadBundle(t, th)
	want, err := network.Policy(operatorNamespace)
	if err != nil {
		t.Fatal(err)
	}
	p := policies.Policies{Live: th, Client: th, Namespace: operatorNamespace}
	if err := p.LimitPorts(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin := cluster.Client(t)
	t.Cleanup(func() { _ = admin.Delete(context.Background(), want.DeepCopy()) })
	have := want.DeepCopy()
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(want), have); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Object["spec"], have.Object["spec"]); diff != "" {
		t.Errorf("(-the manifest +what the operator creates):\n%s", diff)
	}
	if err := admin.Patch(t.Context(), have, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ingress":[{}]}}`))); err != nil {
		t.Fatal(err)
	}
	changed := have.GetResourceVersion()
	if err := p.LimitPorts(t.Context()); err != nil {
		t.Error(err)
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(want), have); err != nil || have.GetResourceVersion() != changed {
		t.Errorf("the operator has changed the policy: %v", err)
	}
	other := want.DeepCopy()
	other.SetName("another")
	if err := th.Create(t.Context(), other); !apierrors.IsForbidden(err) {
		t.Errorf("a policy of another name: %v", err)
	}
}
