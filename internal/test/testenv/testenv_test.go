package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/internal/test/testenv/controlplane"
)

var server Environment

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// recorder is a test whose result is checked.
type recorder struct {
	testing.TB
	errors  []string
	skipped string
}

func (t *recorder) Errorf(format string, args ...any) {
	t.errors = append(t.errors, fmt.Sprintf(format, args...))
}

func (t *recorder) Skip(args ...any) {
	t.skipped = fmt.Sprint(args...)
	runtime.Goexit()
}

// run runs a part of a test that may end its goroutine.
func (t *recorder) run(part func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		part()
	}()
	<-done
}

func TestSkipsWithoutThePrograms(t *testing.T) {
	t.Setenv(controlplane.Variable, t.TempDir())
	var nothing Environment
	for range 2 {
		outer := &recorder{TB: t}
		outer.run(func() { nothing.Config(outer) })
		if want := "no kube-apiserver: make testenv"; outer.skipped != want {
			t.Errorf("skipped with %q, want %q", outer.skipped, want)
		}
	}
	if err := nothing.stopServer(); err != nil {
		t.Error(err)
	}
}

// write writes a file of manifests and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const version = `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version, resourceVersion: "12", uid: 6f4e4c0a-58c8-4f0c-9e9c-2f3f8b5a4a31}
spec: {clusterID: 3f0a5c9e-1d8b-4f53-9c3c-5a1f1a0e7d11}
status: {availableUpdates: null, desired: {image: example.com/a, version: 5.0.1}, observedGeneration: 1, versionHash: x}
`

const machine = `
# Only a comment.
---
apiVersion: v1
kind: List
items:
- apiVersion: machine.openshift.io/v1beta1
  kind: Machine
  metadata: {name: a, namespace: openshift-machine-api, finalizers: [machine.machine.openshift.io]}
  spec: {}
  status: {phase: Running}
`

func TestLoadCreatesObjectsUntilTheEndOfTheTest(t *testing.T) {
	c := server.Client(t)
	key := client.ObjectKey{Name: "version"}
	stored := &unstructured.Unstructured{}
	stored.SetAPIVersion(configv1.GroupVersion.String())
	stored.SetKind("ClusterVersion")
	// Twice: the first must leave nothing.
	for range 2 {
		t.Run("loaded", func(t *testing.T) {
			server.Load(t, write(t, strings.ReplaceAll(version, "5.0.1", "5.0.0")+"---"+machine), write(t, version))
			if err := c.Get(t.Context(), key, stored); err != nil {
				t.Fatal(err)
			}
			got, _, _ := unstructured.NestedString(stored.Object, "status", "desired", "version")
			if got != "5.0.1" {
				t.Errorf("version %q, want that of the later manifest", got)
			}
		})
		if err := c.Get(t.Context(), key, stored); !apierrors.IsNotFound(err) {
			t.Errorf("after the test: %v", err)
		}
	}
}

func TestLoadFailsIfTheServerRefusesAnObject(t *testing.T) {
	mirror := `
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata: {name: a}
spec: {imageDigestMirrors: [{source: "SOURCE", mirrors: [example.com/a]}]}
`
	for name, test := range map[string]struct{ text, want string }{
		"a value that the schema refuses":       {strings.ReplaceAll(mirror, "SOURCE", "not a source"), "spec.imageDigestMirrors[0].source"},
		"an unknown field":                      {strings.ReplaceAll(mirror, "source:", "sauce: a, source:"), "sauce"},
		"a status that the schema refuses":      {strings.ReplaceAll(version, ", versionHash: x", ""), "status.versionHash"},
		"an unknown kind":                       {"apiVersion: example.com/v1\nkind: Unheard\nmetadata: {name: a}\n", "Unheard"},
		"an unknown field of a Kubernetes kind": {"apiVersion: v1\nkind: Node\nmetadata: {name: a}\nspec: {color: red}\n", "color"},
	} {
		t.Run(name, func(t *testing.T) {
			server.Config(t)
			inner := &recorder{TB: t}
			inner.run(func() { server.Load(inner, write(t, test.text)) })
			if len(inner.errors) != 1 || !strings.Contains(inner.errors[0], test.want) {
				t.Errorf("got %q, want one error about %s", inner.errors, test.want)
			}
		})
	}
}

func TestWithoutHidesKindsUntilTheEndOfTheTest(t *testing.T) {
	server.Load(t, write(t, version))
	find := func() error {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(configv1.GroupVersion.String())
		object.SetKind("ClusterVersion")
		return server.Client(t).Get(t.Context(), client.ObjectKey{Name: "version"}, object)
	}
	t.Run("hidden", func(t *testing.T) {
		server.Without(t, "clusterversions.config.openshift.io")
		if err := find(); !meta.IsNoMatchError(err) {
			t.Errorf("error %v, want no match", err)
		}
	})
	if err := find(); err != nil {
		t.Error(err)
	}
}

func TestAUserHasOnlyTheGivenRules(t *testing.T) {
	server.Load(t, write(t, machine))
	config := server.User(t, "somebody",
		Rule{"openshift-machine-api", rbacv1.PolicyRule{APIGroups: []string{"machine.openshift.io"}, Resources: []string{"machines"}, Verbs: []string{"get"}, ResourceNames: []string{"a"}}},
		Rule{"", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}},
	)
	c := NewClient(t, config)
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("machine.openshift.io/v1beta1")
	object.SetKind("Machine")
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "openshift-machine-api", Name: "a"}, object); err != nil {
		t.Error(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "openshift-machine-api", Name: "b"}, object); !apierrors.IsForbidden(err) {
		t.Errorf("another name: %v", err)
	}
	list := &unstructured.UnstructuredList{}
	for kind, forbidden := range map[string]bool{"NodeList": false, "SecretList": true} {
		list.SetAPIVersion("v1")
		list.SetKind(kind)
		if err := c.List(t.Context(), list); apierrors.IsForbidden(err) != forbidden {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
