package configure

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/remote"
	"wmco/bundle"
	"wmco/render"
)

// LoginAccount is the account to log in to: that of the entry in windows-instances, or the one of the cloud's image. It is
// empty for a Node without an entry and without a Machine.
func LoginAccount(n render.Node, p bundle.Platform) string {
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

// ReadNode reads a Node from a cache or from the API server.
func ReadNode(ctx context.Context, r client.Reader, name string) (*corev1.Node, error) {
	var node corev1.Node
	if err := r.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return nil, err
	}
	return &node, nil
}
