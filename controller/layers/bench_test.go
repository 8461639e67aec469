package layers

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/windowsnode/nodelist"
)

// fleetCache is a cache of Nodes; it has no Secret, Role and RoleBinding.
type fleetCache struct {
	client.Reader
	nodes []corev1.Node
}

func (f *fleetCache) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, ok := into.(*corev1.NodeList); ok {
		list.Items = slices.Clone(f.nodes)
	}
	return nil
}

func (f *fleetCache) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// BenchmarkCompare compares published with wanted bundles for 2,500 nodes, one of which has another version each time.
func BenchmarkCompare(b *testing.B) {
	const size = 2500
	cluster, own := pack(b, bundle.LayerCluster, "shared"), pack(b, bundle.LayerNode, "own")
	whole, err := bundle.DigestLayers(cluster.Digest, own.Digest)
	if err != nil {
		b.Fatal(err)
	}
	cache := &fleetCache{}
	var wanted []Wanted
	for i := range size {
		w := Wanted{Node: fmt.Sprintf("win-%04d", i), Bundle: whole, Cluster: &cluster, Own: own}
		wanted = append(wanted, w)
		reportText := report(b, published.Report{State: published.StateApplied, Desired: whole, Applied: whole, Layers: []bundle.Digest{cluster.Digest, own.Digest}})
		cache.nodes = append(cache.nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: w.Node, UID: types.UID(w.Node), ResourceVersion: "0",
			Annotations: map[string]string{published.DesiredAnnotation: text(b, w, bundle.ImpactNone), published.ReportAnnotation: reportText},
		}})
	}
	p := &Publisher{Decoded: &nodelist.Cache{}, Known: func(context.Context, bool) (func(string, types.UID) bool, error) {
		return func(string, types.UID) bool { return true }, nil
	}}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		cache.nodes[i%size].ResourceVersion = fmt.Sprint(i + 1)
		c, _, err := p.compareWithCluster(b.Context(), wanted, cache, cache)
		if err != nil || len(c.Create) == 0 {
			b.Fatal(err, c.Create)
		}
	}
}
