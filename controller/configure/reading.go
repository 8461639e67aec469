package configure

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/render"
)

// Account is the account to log in to: that of the entry in windows-instances, or the one that the cloud's image has. It is empty for a
// Node that is neither's.
func Account(n render.Node, p bundle.Platform) string {
	switch n.Backing {
	case render.BackingInstance:
		return n.Username
	case render.BackingMachine:
		if p == bundle.PlatformAzure {
			return "capi" // the account that Azure's Machines are created with
		}
		return remote.DefaultUser
	case render.BackingNode:
	}
	return ""
}

// ReadLiveNode reads a Node from the API server.
func ReadLiveNode(ctx context.Context, r client.Reader, name string) (*corev1.Node, error) {
	var node corev1.Node
	if err := r.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return nil, err
	}
	return &node, nil
}

// ReadCachedNode reads a Node from the cache, which has them unstructured.
func ReadCachedNode(ctx context.Context, r client.Reader, name string) (*corev1.Node, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	if err := r.Get(ctx, client.ObjectKey{Name: name}, u); err != nil {
		return nil, err
	}
	var node corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &node); err != nil {
		return nil, fmt.Errorf("reading Node %s: %w", name, err)
	}
	return &node, nil
}
