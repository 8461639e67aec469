// Package nodelist lists Windows Nodes, decoded: from an informer cache, where each version of a Node is decoded once,
// or from the API server.
package nodelist

import (
	"context"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/windowsnode"
)

// Cache keeps the Nodes that were decoded last, while there are Nodes of these names. It may be used by several
// goroutines; a nil Cache keeps nothing, and decodes each time.
type Cache struct {
	mu      sync.Mutex
	decoded map[string]windowsnode.Node
}

func windowsNodes() client.MatchingLabels {
	return client.MatchingLabels{corev1.LabelOSStable: windowsnode.Windows}
}

// ListCached returns the Windows Nodes of an informer cache. They share what the cache has, and others get the same
// values: they are only read.
func (c *Cache) ListCached(ctx context.Context, r client.Reader) ([]windowsnode.Node, error) {
	var list corev1.NodeList
	if err := r.List(ctx, &list, windowsNodes(), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Windows nodes: %w", err)
	}
	if c == nil {
		c = &Cache{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.decodeChanged(list.Items), nil
}

// decodeChanged decodes the Nodes of which another version was decoded before, or none, and forgets those that are not
// in the list.
func (c *Cache) decodeChanged(items []corev1.Node) []windowsnode.Node {
	nodes, listed := make([]windowsnode.Node, len(items)), make(map[string]bool, len(items))
	for i := range items {
		nodes[i] = c.decodeOnce(&items[i])
		listed[nodes[i].Name] = true
	}
	maps.DeleteFunc(c.decoded, func(name string, _ windowsnode.Node) bool { return !listed[name] })
	return nodes
}

// decodeOnce decodes a Node, unless this version of it was decoded before.
func (c *Cache) decodeOnce(object *corev1.Node) windowsnode.Node {
	before, known := c.decoded[object.Name]
	if known && before.ResourceVersion != "" && before.ResourceVersion == object.ResourceVersion && before.UID == object.UID {
		return before
	}
	var n windowsnode.Node
	if known {
		n = windowsnode.DecodeAfter(before, *object)
	} else {
		n = windowsnode.Decode(*object)
	}
	if c.decoded == nil {
		c.decoded = map[string]windowsnode.Node{}
	}
	c.decoded[n.Name] = n
	return n
}

// ReadCached returns a Node of an informer cache, as ListCached does: an event of a Node is decoded for that node
// alone, and for all who list the Nodes after it.
func (c *Cache) ReadCached(ctx context.Context, r client.Reader, name string) (windowsnode.Node, error) {
	var object corev1.Node
	if err := r.Get(ctx, client.ObjectKey{Name: name}, &object, client.UnsafeDisableDeepCopy); err != nil {
		return windowsnode.Node{}, err
	}
	if c == nil {
		c = &Cache{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.decodeOnce(&object), nil
}

// DecodeCached returns a Node decoded: as it was decoded for a list, if that had this version of it.
func (c *Cache) DecodeCached(object corev1.Node) windowsnode.Node {
	if c != nil && object.ResourceVersion != "" {
		c.mu.Lock()
		n, ok := c.decoded[object.Name]
		c.mu.Unlock()
		if ok && n.ResourceVersion == object.ResourceVersion && n.UID == object.UID {
			return n
		}
	}
	return windowsnode.Decode(object)
}

// ListLive returns the Windows Nodes as the API server has them.
func ListLive(ctx context.Context, r client.Reader) ([]windowsnode.Node, error) {
	var list corev1.NodeList
	if err := r.List(ctx, &list, windowsNodes()); err != nil {
		return nil, fmt.Errorf("listing Windows nodes: %w", err)
	}
	nodes := make([]windowsnode.Node, len(list.Items))
	for i, object := range list.Items {
		nodes[i] = windowsnode.Decode(object)
	}
	return nodes, nil
}

// ListLiveMetadata is ListLive for who needs annotations alone: the Nodes have neither spec nor status.
func ListLiveMetadata(ctx context.Context, r client.Reader) ([]windowsnode.Node, error) {
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}}
	if err := r.List(ctx, list, windowsNodes()); err != nil {
		return nil, fmt.Errorf("listing Windows nodes: %w", err)
	}
	nodes := make([]windowsnode.Node, len(list.Items))
	for i, item := range list.Items {
		nodes[i] = windowsnode.Decode(corev1.Node{ObjectMeta: item.ObjectMeta})
	}
	return nodes, nil
}
