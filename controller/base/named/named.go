// Package named creates objects of fixed names by server-side apply. The API server authorizes that with the name, so a
// right to create can be limited to it; a plain create is authorized without one.
//
//	verbs: [create, patch], resourceNames: [x]   --> x can be created, and nothing else
package named

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Owner is the field manager of created objects.
const Owner = "windows-machine-config-operator"

// CreateIfAbsent creates the object where there is none of its name, and makes it what the API server has then. Where
// another one created it before, its fields stay: one that differs from a field of the object is a conflict
// (apierrors.IsConflict), and changes nothing.
func CreateIfAbsent(ctx context.Context, c client.Client, o client.Object) error {
	return serverSideApply(ctx, c, o, client.FieldOwner(Owner))
}

// ForceApply makes the object have these fields, whoever wrote them before, and creates it where there is none. The API
// server writes nothing where nothing changes.
func ForceApply(ctx context.Context, c client.Client, o client.Object, owner client.FieldOwner) error {
	return serverSideApply(ctx, c, o, owner, client.ForceOwnership)
}

func serverSideApply(ctx context.Context, c client.Client, o client.Object, options ...client.ApplyOption) error {
	kind := o.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		var err error
		if kind, err = apiutil.GVKForObject(o, c.Scheme()); err != nil {
			return fmt.Errorf("finding the kind of %s: %w", o.GetName(), err)
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", kind.Kind, o.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	// Zero values that are no wishes: the API server sets both.
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(u.Object, "status")
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...); err != nil {
		return fmt.Errorf("applying %s %s: %w", kind.Kind, o.GetName(), err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, o.GetName(), err)
	}
	return nil
}
