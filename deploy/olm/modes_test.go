package olm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// grant is a rule as it is in effect after OLM has installed a bundle.
type grant struct {
	// namespace is empty for the whole cluster.
	namespace string
	subject   string
	rbacv1.PolicyRule
}

// expand returns the rules that a bundle gives, as OLM makes them: `permissions` are for the watched namespaces, which are all with an
// OperatorGroup for all namespaces (operator-lifecycle-manager, pkg/controller/registry/resolver/rbac.go and
// pkg/controller/operators/olm/operatorgroup.go; operator-controller, internal/operator-controller/rukpak/render/registryv1/generators).
func expand(t *testing.T, b Files, allNamespaces bool) []grant {
	t.Helper()
	var csv struct {
		Spec struct {
			Install struct {
				Spec struct {
					ClusterPermissions, Permissions []permissions
				}
			}
		}
	}
	parse(t, b["manifests/"+Package+".clusterserviceversion.yaml"], &csv)
	watched := namespace
	if allNamespaces {
		watched = ""
	}
	var list []grant
	for _, p := range csv.Spec.Install.Spec.ClusterPermissions {
		list = append(list, grants("", p.ServiceAccountName, p.Rules)...)
	}
	for _, p := range csv.Spec.Install.Spec.Permissions {
		list = append(list, grants(watched, p.ServiceAccountName, p.Rules)...)
	}
	roles := map[string]rbacv1.ClusterRole{}
	bindings := map[string]rbacv1.ClusterRoleBinding{}
	for name, text := range b {
		switch {
		case strings.HasSuffix(name, "role.yaml"):
			var r rbacv1.ClusterRole // a Role has the same fields
			parse(t, text, &r)
			roles[r.Kind+"/"+r.Name] = r
		case strings.HasSuffix(name, "rolebinding.yaml"):
			var r rbacv1.ClusterRoleBinding
			parse(t, text, &r)
			bindings[r.Kind+"/"+r.Name] = r
		}
	}
	for _, binding := range bindings {
		at := namespace // OLM puts a RoleBinding there
		if binding.Kind == kindClusterRoleBinding {
			at = ""
		}
		role, ok := roles[binding.RoleRef.Kind+"/"+binding.RoleRef.Name]
		if !ok {
			t.Errorf("%s %s: the bundle has no %s %s", binding.Kind, binding.Name, binding.RoleRef.Kind, binding.RoleRef.Name)
		}
		for _, s := range binding.Subjects {
			list = append(list, grants(at, s.Name, role.Rules)...)
		}
	}
	return list
}

func parse(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func grants(namespace, subject string, rules []rbacv1.PolicyRule) []grant {
	var list []grant
	for _, r := range rules {
		list = append(list, grant{namespace, subject, r})
	}
	return list
}

// tooWide returns the rules about any Secret or ConfigMap of the cluster.
func tooWide(list []grant) []string {
	var found []string
	for _, g := range list {
		core := slices.Contains(g.APIGroups, "") || slices.Contains(g.APIGroups, "*")
		kinds := slices.ContainsFunc(g.Resources, func(r string) bool { return r == "*" || r == "secrets" || r == "configmaps" })
		if g.namespace == "" && core && kinds && len(g.ResourceNames) == 0 {
			found = append(found, fmt.Sprintf("%s: %v %v", g.subject, g.Verbs, g.Resources))
		}
	}
	slices.Sort(found)
	return found
}

func TestNoRightToAnySecretOrConfigMap(t *testing.T) {
	for _, allNamespaces := range []bool{false, true} {
		list := expand(t, exampleBundle(t), allNamespaces)
		if len(list) < 20 {
			t.Errorf("only %d rules were found", len(list))
		}
		if found := tooWide(list); len(found) > 0 {
			t.Errorf("in all namespaces %t, for the whole cluster without a name: %s", allNamespaces, strings.Join(found, "; "))
		}
	}
}

// TestPermissionsOfTheCSVBecomeClusterWide shows why the bundle has Role objects.
func TestPermissionsOfTheCSVBecomeClusterWide(t *testing.T) {
	b := exampleBundle(t)
	const name = "manifests/" + Package + ".clusterserviceversion.yaml"
	var csv map[string]any
	parse(t, b[name], &csv)
	spec := csv["spec"].(map[string]any)["install"].(map[string]any)["spec"].(map[string]any)
	spec["permissions"] = []permissions{{Package, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}}}
	text, err := yaml.Marshal(csv)
	if err != nil {
		t.Fatal(err)
	}
	b[name] = text
	const wide = Package + ": [get] [secrets]"
	if found := tooWide(expand(t, b, false)); slices.Contains(found, wide) {
		t.Errorf("in one namespace: %q", found)
	}
	if found := tooWide(expand(t, b, true)); !slices.Contains(found, wide) {
		t.Errorf("in all namespaces: %q", found)
	}
}

// inBundle returns the rule as a bundle has it: OLM puts no Role into another namespace, and carries no policy.
func inBundle(g grant) grant {
	if g.namespace != namespace {
		g.namespace = ""
	}
	if slices.Contains(g.Resources, "validatingadmissionpolicies") {
		g.Verbs = append(slices.Clone(g.Verbs), "create", "patch")
	}
	return g
}

// TestOLMAndKustomizeGiveTheSameRights: an operator may do the same however it was installed, but for the exceptions in inBundle.
func TestOLMAndKustomizeGiveTheSameRights(t *testing.T) {
	var want []string
	roles := map[string][]rbacv1.PolicyRule{}
	for _, o := range shipped(t) {
		if strings.HasSuffix(o.GetKind(), "Role") {
			var r rbacv1.ClusterRole
			text, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			parse(t, text, &r)
			roles[o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName()] = r.Rules
		}
	}
	for _, o := range shipped(t) {
		if !strings.HasSuffix(o.GetKind(), "RoleBinding") {
			continue
		}
		var r rbacv1.ClusterRoleBinding
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		parse(t, text, &r)
		for _, s := range r.Subjects {
			at := o.GetNamespace()
			if r.RoleRef.Kind == kindClusterRole {
				at = ""
			}
			for _, g := range grants(o.GetNamespace(), s.Name, roles[r.RoleRef.Kind+"/"+at+"/"+r.RoleRef.Name]) {
				want = append(want, fmt.Sprint(inBundle(g)))
			}
		}
	}
	slices.Sort(want)
	for _, allNamespaces := range []bool{false, true} {
		var got []string
		for _, g := range expand(t, exampleBundle(t), allNamespaces) {
			got = append(got, fmt.Sprint(g))
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in all namespaces %t (-kustomize +OLM):\n%s", allNamespaces, diff)
		}
	}
}
