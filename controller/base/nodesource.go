package base

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"wmco/bundle/published"
	"wmco/controller/gather/objects"
)

// nodeSource lists and watches Nodes for the cache, which has them as Go types, as it has no other kind that is an input: a thousand of them take a
// third of the memory, and nothing is converted when one is read. The API server sends them in its own form (protobuf), which is decoded in a tenth
// of the time of JSON. What is not read, such as managedFields and images, is dropped at once.
type nodeSource struct {
	nodes corev1client.NodeInterface
	// labels is the selector of the Nodes that are wanted.
	labels string
	// strings are those of the Nodes that were read.
	strings sharedStrings
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
	list, err := s.nodes.List(ctx, o)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		s.stripNode(&list.Items[i])
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
		if node, ok := e.Object.(*corev1.Node); ok { // an error is a Status
			s.stripNode(node)
		}
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

// stripNode drops what no part of the operator reads, such as images, volumes and resources, and says the kind, which Go types do not say by themselves.
// The strings that Nodes have in common are shared.
func (s *nodeSource) stripNode(node *corev1.Node) {
	node.TypeMeta, node.ManagedFields = typeMeta(NodeKind()), nil
	node.Labels, node.Annotations = s.strings.shareMap(node.Labels), s.strings.shareMap(node.Annotations)
	node.Status = corev1.NodeStatus{
		Addresses: node.Status.Addresses, Conditions: s.readConditions(node.Status.Conditions),
		NodeInfo: corev1.NodeSystemInfo{KubeletVersion: s.strings.shareString(node.Status.NodeInfo.KubeletVersion)},
	}
}

// readConditions returns those of the kubelet and of the node agent, which are read.
func (s *nodeSource) readConditions(all []corev1.NodeCondition) []corev1.NodeCondition {
	var list []corev1.NodeCondition
	for _, c := range all {
		if c.Type == corev1.NodeReady || c.Type == published.Condition {
			c.Type, c.Status = corev1.NodeConditionType(s.strings.shareString(string(c.Type))), corev1.ConditionStatus(s.strings.shareString(string(c.Status)))
			c.Reason, c.Message = s.strings.shareString(c.Reason), s.strings.shareString(c.Message)
			list = append(slices.Grow(list, 1), c)
		}
	}
	return list
}

// unstructuredNode returns a Node as those read it who read all kinds alike. It shares nothing with the Node.
func unstructuredNode(node *corev1.Node) (Object, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(node)
	if err != nil {
		return nil, fmt.Errorf("reading Node %s: %w", node.Name, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(NodeKind())
	return u, nil
}
