// Package manifests reads Kubernetes objects from files, and puts them into an API server with their status, as a
// cluster has them.
package manifests

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
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Manifest is an object in a file.
type Manifest struct {
	*unstructured.Unstructured
	file string
}

func (m Manifest) String() string {
	return fmt.Sprintf("%s: %s %s", m.file, m.GetKind(), client.ObjectKeyFromObject(m))
}

// id is the same for two manifests of one object.
func (m Manifest) id() string {
	return m.GroupVersionKind().GroupKind().String() + " " + m.GetNamespace() + "/" + m.GetName()
}

const kindNamespace = "Namespace"

// Read reads the objects, and those in lists, of files and of all YAML files below folders. Of two manifests of one
// object the later one wins, as with --from.
func Read(paths ...string) ([]Manifest, error) {
	var list []Manifest
	for _, p := range paths {
		more, err := readAll(p)
		if err != nil {
			return nil, err
		}
		for _, m := range more {
			list = append(slices.DeleteFunc(list, func(old Manifest) bool { return old.id() == m.id() }), m)
		}
	}
	return list, nil
}

// Namespaces returns the namespaces of the objects, those first that have a manifest, and the other objects.
func Namespaces(list []Manifest) (namespaces, others []Manifest) {
	for _, m := range list {
		if m.GetKind() == kindNamespace {
			namespaces = append(namespaces, m)
			continue
		}
		others = append(others, m)
	}
	for _, m := range others {
		name := m.GetNamespace()
		if name == "" || slices.ContainsFunc(namespaces, func(n Manifest) bool { return n.GetName() == name }) {
			continue
		}
		namespace := &unstructured.Unstructured{}
		namespace.SetAPIVersion("v1")
		namespace.SetKind(kindNamespace)
		namespace.SetName(name)
		namespaces = append(namespaces, Manifest{namespace, m.file})
	}
	return namespaces, others
}

// NewClient returns a client that refuses unknown fields. It prints no warnings: the server warns about what every
// cluster has, such as finalizers without a slash.
func NewClient(admin *rest.Config) (client.Client, error) {
	quiet := rest.CopyConfig(admin)
	quiet.WarningHandler = rest.NoWarnings{}
	c, err := client.New(quiet, client.Options{})
	if err != nil {
		return nil, err
	}
	return client.WithFieldValidation(c, metav1.FieldValidationStrict), nil
}

// Create creates an object and then sets its status, for which a subresource needs a second request. A Namespace that
// exists is no error.
func (m Manifest) Create(ctx context.Context, c client.Client) error {
	sent := m.DeepCopy()
	for _, field := range []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"} {
		unstructured.RemoveNestedField(sent.Object, "metadata", field)
	}
	err := retry.OnError(wait.Backoff{Duration: 100 * time.Millisecond, Steps: 600}, isBeingDeleted, func() error { return c.Create(ctx, sent) })
	if apierrors.IsAlreadyExists(err) && m.GetKind() == kindNamespace {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m, err)
	}
	status, ok := m.Object["status"]
	if !ok || apiequality.Semantic.DeepEqual(status, sent.Object["status"]) {
		return nil
	}
	// A controller may have changed the object since.
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(sent), sent); err != nil {
			return err
		}
		sent.Object["status"] = status
		return c.Status().Update(ctx, sent)
	}); err != nil {
		return fmt.Errorf("%s: %w", m, err)
	}
	return nil
}

// isBeingDeleted reports whether an object of that name is about to go, as a definition does until its objects are
// gone. Only the message of the API server tells it from one that stays.
func isBeingDeleted(err error) bool {
	return apierrors.IsAlreadyExists(err) && strings.Contains(err.Error(), "object is being deleted")
}

// Remove deletes an object without its finalizers, as no controller runs that would remove them. An object that does
// not exist is no error.
func (m Manifest) Remove(ctx context.Context, c client.Client) (err error) {
	if len(m.GetFinalizers()) > 0 {
		none := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		err = c.Patch(ctx, m.DeepCopy(), none)
	}
	if err == nil {
		err = c.Delete(ctx, m.DeepCopy())
	}
	if err == nil && m.GetKind() == "CustomResourceDefinition" {
		if err = m.awaitRemoved(ctx, c); wait.Interrupted(err) {
			err = nil // objects with finalizers are left to others
		}
	}
	if err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	return fmt.Errorf("removing %s: %w", m, err)
}

// awaitRemoved waits until an object does not exist any longer: the API server removes the objects of a definition
// first, and until then it cannot be created again.
func (m Manifest) awaitRemoved(ctx context.Context, c client.Client) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(m), m.DeepCopy())
		return err != nil, client.IgnoreNotFound(err)
	})
}

// readAll reads a file, or all YAML files below a folder.
func readAll(root string) ([]Manifest, error) {
	var list []Manifest
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

func parseManifests(path string, text []byte) ([]Manifest, error) {
	var list []Manifest
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		json, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if string(json) == "null" {
			continue // only comments
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(json); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		if !u.IsList() {
			list = append(list, Manifest{u, path})
			continue
		}
		if err := u.EachListItem(func(item runtime.Object) error {
			list = append(list, Manifest{item.(*unstructured.Unstructured), path})
			return nil
		}); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
	}
}
