package testenv

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// manifest is an object in a file.
type manifest struct {
	*unstructured.Unstructured
	file string
}

func (m manifest) String() string {
	return fmt.Sprintf("%s: %s %s", m.file, m.GetKind(), client.ObjectKeyFromObject(m))
}

// id is the same for two manifests of one object.
func (m manifest) id() string {
	return m.GroupVersionKind().GroupKind().String() + " " + m.GetNamespace() + "/" + m.GetName()
}

// Load creates the objects of files and folders, with their status, until the end of the test. Of two manifests of one object
// the later one wins, as with --from. The test fails if the server refuses an object or does not know one of its fields.
// Namespaces stay: without controllers, nothing could empty them.
func (e *Environment) Load(t testing.TB, paths ...string) {
	t.Helper()
	var list []manifest
	for _, p := range paths {
		more, err := readManifests(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range more {
			list = slices.DeleteFunc(list, func(old manifest) bool { return old.id() == m.id() })
			list = append(list, m)
		}
	}
	e.loadNamespaces(t, list)
	// The server warns about what every cluster has, such as finalizers without a slash.
	quiet := rest.CopyConfig(e.Config(t))
	quiet.WarningHandler = rest.NoWarnings{}
	c := client.WithFieldValidation(NewClient(t, quiet), metav1.FieldValidationStrict)
	for _, m := range list {
		if m.GetKind() == "Namespace" {
			continue
		}
		// Registered first: if the server refuses only the status, the object exists.
		t.Cleanup(func() {
			if err := remove(context.Background(), c, m); err != nil {
				t.Errorf("removing %s: %v", m, err)
			}
		})
		if e.Options.Controllers {
			// The garbage collector removes what has an owner that does not exist, and in manifests no owner has the right UID.
			m.SetOwnerReferences(nil)
		}
		if err := create(t.Context(), c, m); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
}

// loadNamespaces creates the namespaces of the objects, also those that are not in the files.
func (e *Environment) loadNamespaces(t testing.TB, list []manifest) {
	t.Helper()
	c := e.Client(t)
	for _, m := range list {
		namespace := &unstructured.Unstructured{}
		namespace.SetAPIVersion("v1")
		namespace.SetKind("Namespace")
		namespace.SetName(m.GetNamespace())
		if m.GetKind() == namespace.GetKind() {
			namespace = m.Unstructured
		}
		if namespace.GetName() == "" {
			continue
		}
		if err := create(t.Context(), c, manifest{namespace, m.file}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("creating namespace %s: %v", namespace.GetName(), err)
		}
	}
}

// create creates an object and then sets its status, for which a subresource needs a second request.
func create(ctx context.Context, c client.Client, m manifest) error {
	sent := m.DeepCopy()
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		unstructured.RemoveNestedField(sent.Object, "metadata", field)
	}
	if err := c.Create(ctx, sent); err != nil {
		return err
	}
	status, ok := m.Object["status"]
	if !ok || apiequality.Semantic.DeepEqual(status, sent.Object["status"]) {
		return nil
	}
	// A controller may have written meanwhile.
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(sent), sent); err != nil {
			return err
		}
		sent.Object["status"] = status
		return c.Status().Update(ctx, sent)
	})
}

// remove deletes an object without its finalizers, as no controller runs that would remove them. An object that does not
// exist is no error.
func remove(ctx context.Context, c client.Client, m manifest) (err error) {
	if len(m.GetFinalizers()) > 0 {
		none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		err = c.Patch(ctx, m.DeepCopy(), none)
	}
	if err == nil {
		err = c.Delete(ctx, m.DeepCopy())
	}
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// readManifests reads the objects, and those in lists, of a file or of all YAML files below a folder.
func readManifests(root string) ([]manifest, error) {
	var list []manifest
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		more, err := parseManifests(path, text)
		list = append(list, more...)
		return err
	})
	return list, err
}

func parseManifests(path string, text []byte) ([]manifest, error) {
	var list []manifest
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		text, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if string(text) == "null" {
			continue // only comments
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if !u.IsList() {
			list = append(list, manifest{u, path})
			continue
		}
		if err := u.EachListItem(func(item runtime.Object) error {
			list = append(list, manifest{item.(*unstructured.Unstructured), path})
			return nil
		}); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
	}
}
