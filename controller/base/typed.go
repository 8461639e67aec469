package base

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/gather/objects"
)

// NewList returns an empty list of objects of a kind.
func NewList(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	return objects.NewList(kind)
}

// MetadataOf returns an empty object of a kind of which only the metadata is read.
func MetadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: typeMeta(kind)}
}

// MetadataList is MetadataOf for all objects of the kind.
func MetadataList(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	kind.Kind += "List"
	return &metav1.PartialObjectMetadataList{TypeMeta: typeMeta(kind)}
}

func typeMeta(kind schema.GroupVersionKind) metav1.TypeMeta {
	version, name := kind.ToAPIVersionAndKind()
	return metav1.TypeMeta{APIVersion: version, Kind: name}
}

// TypedClient returns a client that reads objects with a Go type from a cache that has them unstructured, and
// unstructured Nodes from a cache that has them as Go types. Without it, controller-runtime would begin a second watch
// for the other form, and keep all objects of the kind once more. Other lists are as the cache has them: each object
// would be converted each time.
func TypedClient(c client.Client, cached []objects.Want) client.Client {
	t := typedClient{c, map[schema.GroupVersionKind]bool{}}
	for _, w := range cached {
		t.cached[KindOf(w)] = KindOf(w) != NodeKind()
	}
	return t
}

type typedClient struct {
	client.Client
	cached map[schema.GroupVersionKind]bool
}

// Get implements client.Reader.
func (t typedClient) Get(ctx context.Context, key client.ObjectKey, o client.Object,
	options ...client.GetOption) error {
	switch o := o.(type) {
	case Object:
		if o.GroupVersionKind() == NodeKind() {
			return t.getUnstructuredNode(ctx, key, o)
		}
		return t.Client.Get(ctx, key, o, options...)
	case runtime.Unstructured, *metav1.PartialObjectMetadata:
		return t.Client.Get(ctx, key, o, options...)
	}
	kind, err := t.GroupVersionKindFor(o)
	if err != nil {
		return err
	}
	if !t.cached[kind] {
		return t.Client.Get(ctx, key, o, options...)
	}
	u := NewObject(kind)
	// the conversion copies
	if err := t.Client.Get(ctx, key, u, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return fmt.Errorf("reading %s %s: %w", kind.Kind, key.Name, err)
	}
	return nil
}

func (t typedClient) getUnstructuredNode(ctx context.Context, key client.ObjectKey, into Object) error {
	var node corev1.Node
	if err := t.Client.Get(ctx, key, &node, client.UnsafeDisableDeepCopy); err != nil { // the conversion copies
		return err
	}
	u, err := unstructuredNode(&node)
	if err != nil {
		return err
	}
	into.Object = u.Object
	return nil
}

// List implements client.Reader.
func (t typedClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	into, ok := list.(*unstructured.UnstructuredList)
	if !ok || into.GroupVersionKind() != NewList(NodeKind()).GroupVersionKind() {
		return t.Client.List(ctx, list, options...)
	}
	var nodes corev1.NodeList
	// the conversion copies
	if err := t.Client.List(ctx, &nodes, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	into.Items = make([]unstructured.Unstructured, len(nodes.Items))
	for i := range nodes.Items {
		u, err := unstructuredNode(&nodes.Items[i])
		if err != nil {
			return err
		}
		into.Items[i] = *u
	}
	return nil
}
