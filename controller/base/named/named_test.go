package named

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/internal/test/testenv"
)

var server testenv.Environment

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

func config(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: data}
}

// TestARightToOneName: the right to create and patch one name is enough for CreateIfAbsent, and for nothing else.
func TestARightToOneName(t *testing.T) {
	c := testenv.NewClient(t, server.User(t, "creator", testenv.Rule{Namespace: "default", PolicyRule: rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"one"}, Verbs: []string{"create", "patch"},
	}}))
	if err := CreateIfAbsent(t.Context(), c, config("other", nil)); !apierrors.IsForbidden(err) {
		t.Errorf("another name: %v", err)
	}
	if err := c.Create(t.Context(), config("one", nil)); !apierrors.IsForbidden(err) {
		t.Errorf("a plain create: %v", err)
	}
	o := config("one", map[string]string{"a": "b"})
	if err := CreateIfAbsent(t.Context(), c, o); err != nil || o.UID == "" || o.ResourceVersion == "" {
		t.Errorf("%+v: %v", o.ObjectMeta, err)
	}
}

// TestWhatAnotherOneCreatedStays: two create the same object at the same time.
func TestWhatAnotherOneCreatedStays(t *testing.T) {
	c := server.Client(t)
	theirs := config("both", map[string]string{"a": "theirs"})
	if err := c.Create(t.Context(), theirs, client.FieldOwner("another")); err != nil {
		t.Fatal(err)
	}
	if err := CreateIfAbsent(t.Context(), c, config("both", map[string]string{"a": "ours"})); !apierrors.IsConflict(err) {
		t.Errorf("another value: %v", err)
	}
	empty := config("both", nil)
	if err := CreateIfAbsent(t.Context(), c, empty); err != nil || empty.Data["a"] != "theirs" || empty.UID != theirs.UID {
		t.Errorf("%+v: %v", empty, err)
	}
	// Again, after it was changed in another way: an object without fields takes none away.
	empty = config("both", nil)
	if err := CreateIfAbsent(t.Context(), c, empty); err != nil || empty.Data["a"] != "theirs" {
		t.Errorf("%+v: %v", empty, err)
	}
	forced := config("both", map[string]string{"a": "ours"})
	if err := ForceApply(t.Context(), c, forced, "forces"); err != nil || forced.Data["a"] != "ours" {
		t.Errorf("%+v: %v", forced, err)
	}
}
