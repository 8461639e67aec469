package layers

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/test/testenv"
)

// shipped returns the rules of the operator for Windows Nodes, layers and the access to them.
func shipped(t *testing.T) []testenv.Rule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "rbac", "operator.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var list []testenv.Rule
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var role rbacv1.Role // a ClusterRole has the same fields
		if err := yaml.Unmarshal(document, &role); err != nil {
			t.Fatal(err)
		}
		about := []string{"secrets", "roles", "rolebindings"}
		if role.Kind == "ClusterRole" {
			about = []string{"nodes"}
		}
		for _, r := range role.Rules {
			if slices.ContainsFunc(r.Resources, func(name string) bool { return slices.Contains(about, name) }) {
				list = append(list, testenv.Rule{Namespace: role.Namespace, PolicyRule: r})
			}
		}
	}
	return list
}

// without removes a verb on a resource.
func without(rules []testenv.Rule, verb, resource string) []testenv.Rule {
	var list []testenv.Rule
	for _, r := range rules {
		if !slices.Contains(r.Resources, resource) {
			list = append(list, r)
			continue
		}
		kept := r
		kept.Resources = slices.DeleteFunc(slices.Clone(r.Resources), func(name string) bool { return name == resource })
		if len(kept.Resources) > 0 {
			list = append(list, kept)
		}
		r.Resources, r.Verbs = []string{resource}, slices.DeleteFunc(slices.Clone(r.Verbs), func(v string) bool { return v == verb })
		if len(r.Verbs) > 0 {
			list = append(list, r)
		}
	}
	return list
}

// TestAMissingPermissionIsNamed takes one of the shipped permissions away: the error names it.
func TestAMissingPermissionIsNamed(t *testing.T) {
	for _, tt := range []struct{ verb, resource, want string }{
		{"list", "nodes", `cannot list resource "nodes"`},
		{"list", "secrets", `cannot list resource "secrets"`},
		{"create", "secrets", `cannot create resource "secrets"`},
		{"delete", "secrets", `cannot delete resource "secrets"`},
		{"get", "secrets", `attempting to grant RBAC permissions not currently held`},
		{"get", "roles", `cannot get resource "roles"`},
		{"create", "roles", `cannot create resource "roles"`},
		{"update", "roles", `cannot update resource "roles"`},
		{"get", "rolebindings", `cannot get resource "rolebindings"`},
		{"create", "rolebindings", `cannot create resource "rolebindings"`},
		{"update", "rolebindings", `cannot update resource "rolebindings"`},
		{"delete", "rolebindings", `cannot delete resource "rolebindings"`},
	} {
		t.Run(tt.verb+" "+tt.resource, func(t *testing.T) {
			rules := without(shipped(t), tt.verb, tt.resource)
			if err := publishAll(t, "without-"+tt.verb+"-"+tt.resource, rules); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	t.Run("none is missing", func(t *testing.T) {
		if err := publishAll(t, "with-all", shipped(t)); err != nil {
			t.Error(err)
		}
	})
}

// publishAll makes every kind of write of the publisher, as a user with these rules: the first bundle in a namespace with another
// owner's binding and no Role, then another one, and the removal of the first.
func publishAll(t *testing.T, name string, rules []testenv.Rule) error {
	t.Helper()
	c := newTestCluster(t, "win-a")
	user := testenv.NewClient(t, server.User(t, name, rules...))
	p := &Publisher{Nodes: user, Layers: user, Live: user, Client: user, Namespace: namespace, Known: everyone, Now: time.Now}
	access := metav1.ObjectMeta{Namespace: namespace, Name: Access}
	foreign := &rbacv1.RoleBinding{ObjectMeta: access, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}}
	if err := errors.Join(
		client.IgnoreNotFound(c.Delete(t.Context(), &rbacv1.Role{ObjectMeta: access})), client.IgnoreNotFound(c.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: access})),
		c.Create(t.Context(), foreign),
	); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second"} {
		w := wish(t, "win-a", text, "a")
		if _, err := p.PublishLayers(t.Context(), []Wanted{w}); err != nil {
			return err
		}
		c.tell(t, w)
		c.report(t, "win-a", published.Report{State: published.StateApplied, Layers: []bundle.Digest{w.Cluster.Digest, w.Own.Digest}})
		if _, err := p.PublishLayers(t.Context(), []Wanted{w}); err != nil {
			return err
		}
	}
	if n := len(c.observe(t).Secrets); n != 1 {
		t.Errorf("%d Secrets are left", n)
	}
	return nil
}
