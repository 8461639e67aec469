package layers

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/published"
)

// Access is the name of the Role and the RoleBinding that let nodes read layers.
const Access = "windows-node-layers"

// SecretObject returns the Secret. It has no owner reference: the Publisher deletes it.
func (s Secret) SecretObject(namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.Name,
			Labels: map[string]string{published.LayerLabel: s.Label}},
		Type: published.SecretType, Immutable: new(true), Data: map[string][]byte{published.SecretKey: s.Data},
	}
}

// LayerRole returns the Role that allows reading the named Secrets.
func LayerRole(namespace string, names []string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Access}, Rules: readRules(names)}
}

// LayerRoleBinding returns the RoleBinding of the Role to users.
func LayerRoleBinding(namespace string, users []string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Access}, RoleRef: roleRef(),
		Subjects: userSubjects(users)}
}

// readRules allow reading the named Secrets. A rule without names would allow all Secrets.
func readRules(names []string) []rbacv1.PolicyRule {
	if len(names) == 0 {
		return nil
	}
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: names}}
}

func sameRule(a, b rbacv1.PolicyRule) bool {
	return slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.Verbs, b.Verbs) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && len(a.NonResourceURLs) == 0
}

func roleRef() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: Access}
}

func userSubjects(users []string) []rbacv1.Subject {
	var list []rbacv1.Subject
	for _, u := range users {
		list = append(list, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: u})
	}
	return list
}
