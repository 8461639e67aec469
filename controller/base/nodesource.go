package base

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"wmco/controller/gather/objects"
)

// nodeSource lists and watches Nodes for the cache, which has them unstructured. The API server sends them in its own form (protobuf), which is
// decoded in a tenth of the time of JSON, and what is not kept, such as managedFields and images, is dropped before it is converted: while a
// thousand nodes report, that is most of what an event costs.
type nodeSource struct {
	nodes corev1client.NodeInterface
	// labels is the selector of the Nodes that are wanted.
	labels string
}

// newNodeSource returns the source of the Nodes that are wanted.
func newNodeSource(config *rest.Config, client *http.Client, want objects.Want) (toolscache.ListerWatcherWithContext, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = nil // that of the Go types
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	if client == nil {
		var err error
		if client, err = rest.HTTPClientFor(config); err != nil {
			return nil, err
		}
	}
	c, err := corev1client.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	s := &nodeSource{nodes: c.Nodes()}
	if selector := labelSelectorOf(want); selector != nil {
		s.labels = selector.String()
	}
	return s, nil
}

// ListWithContext implements cache.ListerWithContext.
func (s *nodeSource) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	o.LabelSelector = s.labels
	typed, err := s.nodes.List(ctx, o)
	if err != nil {
		return nil, err
	}
	list := NewList(NodeKind())
	list.SetResourceVersion(typed.ResourceVersion)
	list.SetContinue(typed.Continue)
	list.SetRemainingItemCount(typed.RemainingItemCount)
	list.Items = make([]unstructured.Unstructured, len(typed.Items))
	for i := range typed.Items {
		u, err := unstructuredNode(&typed.Items[i])
		if err != nil {
			return nil, err
		}
		list.Items[i] = *u
	}
	return list, nil
}

// WatchWithContext implements cache.WatcherWithContext.
func (s *nodeSource) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.LabelSelector = s.labels
	events, err := s.nodes.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(e watch.Event) (watch.Event, bool) {
		node, ok := e.Object.(*corev1.Node)
		if !ok {
			return e, true // an error is a Status
		}
		u, err := unstructuredNode(node)
		if err != nil {
			return watch.Event{Type: watch.Error, Object: &apierrors.NewInternalError(err).ErrStatus}, true
		}
		e.Object = u
		return e, true
	}), nil
}

// List and Watch implement cache.ListerWatcher, for those who have no context.
func (s *nodeSource) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), o)
}

func (s *nodeSource) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), o)
}

// unstructuredNode returns a Node as the cache has it.
func unstructuredNode(node *corev1.Node) (Object, error) {
	node.TypeMeta = typeMeta(NodeKind()) // Go types do not say it
	node.ManagedFields, node.Status.Images, node.Status.VolumesAttached, node.Status.VolumesInUse = nil, nil, nil, nil
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(node)
	if err != nil {
		return nil, fmt.Errorf("reading Node %s: %w", node.Name, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}
