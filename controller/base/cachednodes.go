package base

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"wmco/bundle/published"
)

// keepWhatIsRead drops of a Node what no part of the operator reads, such as managedFields, images, volumes and
// resources, and sets the kind, which Go types lack. It is the transform of the cache, which has
// Nodes as Go types: the API server sends those in its own form (protobuf), and nothing is converted when one is read.
func keepWhatIsRead(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok { // the last that is known of one whose deletion was missed
		return object, nil
	}
	node.TypeMeta, node.ManagedFields = typeMeta(NodeKind()), nil
	node.Status = corev1.NodeStatus{
		Addresses: node.Status.Addresses, NodeInfo: corev1.NodeSystemInfo{KubeletVersion: node.Status.NodeInfo.KubeletVersion},
		Conditions: slices.Clip(slices.DeleteFunc(slices.Clone(node.Status.Conditions),
			func(c corev1.NodeCondition) bool { return c.Type != corev1.NodeReady && c.Type != published.Condition })),
	}
	return node, nil
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
