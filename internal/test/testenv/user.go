package testenv

import (
	"context"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rule is a permission of a user in one namespace, or in the whole cluster if the namespace is empty.
type Rule struct {
	Namespace string
	rbacv1.PolicyRule
}

// User returns the configuration of a user with a client certificate who has these rules, and those of every user,
// until the end of the test. The namespaces must exist. User returns when every rule is in effect.
func (e *Environment) User(t testing.TB, name string, rules ...Rule) *rest.Config {
	t.Helper()
	admin := e.Client(t)
	user, err := e.plane.AddUser(name)
	if err != nil {
		t.Fatal(err)
	}
	grants := map[string][]rbacv1.PolicyRule{}
	for _, r := range rules {
		grants[r.Namespace] = append(grants[r.Namespace], r.PolicyRule)
	}
	for namespace, list := range grants {
		for _, o := range rolesOf(name, namespace, list) {
			if err := admin.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := admin.Delete(context.Background(), o); err != nil {
					t.Error(err)
				}
			})
		}
	}
	for _, r := range rules {
		for _, review := range accessReviews(name, r) {
			if err := Eventually(t.Context(), "rule "+r.String(), func() bool { return isAllowed(t, admin, review) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	return user
}

// Node returns the configuration of the kubelet of a node.
func (e *Environment) Node(t testing.TB, name string) *rest.Config {
	t.Helper()
	user, err := e.ControlPlane(t).AddUser("system:node:"+name, "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	return user
}

// rolesOf returns a role and its binding to the user.
func rolesOf(user, namespace string, rules []rbacv1.PolicyRule) []client.Object {
	meta := metav1.ObjectMeta{Name: user, Namespace: namespace}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}
	if namespace == "" {
		return []client.Object{
			&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref},
		}
	}
	ref.Kind = "Role"
	return []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref},
	}
}

// accessReviews returns the questions for everything that the rule allows.
func accessReviews(user string, r Rule) []authorizationv1.SubjectAccessReview {
	var list []authorizationv1.SubjectAccessReview
	names := r.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				for _, name := range names {
					list = append(list, authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
						User: user,
						ResourceAttributes: &authorizationv1.ResourceAttributes{
							Namespace: r.Namespace, Group: group, Resource: resource, Verb: verb, Name: name,
						},
					}})
				}
			}
		}
	}
	return list
}

func isAllowed(t testing.TB, admin client.Client, review authorizationv1.SubjectAccessReview) bool {
	t.Helper()
	if err := admin.Create(t.Context(), &review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}
