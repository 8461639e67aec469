package layers

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/bundle"
	"wmco/bundle/published"
)

// TestCache: a layer is read from its Secrets and packed once while it is asked for, and dropped when it is not any more.
func TestCache(t *testing.T) {
	layer := bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoined}
	packed, err := published.Pack(layer)
	if err != nil {
		t.Fatal(err)
	}
	build := fake.NewClientBuilder()
	for _, p := range packed.Secrets {
		build.WithObjects(Secret{Part: p, Label: packed.Label()}.SecretObject("operator"))
	}
	reads := 0
	c := &Cache{Namespace: "operator", Live: interceptor.NewClient(build.Build(), interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
			reads++
			return w.List(ctx, l, o...)
		},
	})}
	need := func() *published.Packed {
		t.Helper()
		l, err := c.ReadLayer(t.Context(), published.Layer{Digest: packed.Digest})
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.PackLayer(packed.Digest, l)
		if err != nil || p.Digest != packed.Digest {
			t.Fatalf("%s, %v", p.Digest, err)
		}
		return p
	}
	first := need()
	c.DropUnused()
	if again := need(); reads != 1 || again != first {
		t.Errorf("%d reads; packed once: %t", reads, again == first)
	}
	c.DropUnused()
	if _, ok := c.LookupLayer(packed.Digest); !ok {
		t.Error("dropped although it was asked for")
	}
	c.DropUnused()
	if _, ok := c.LookupLayer(packed.Digest); ok {
		t.Error("kept although it was looked up alone")
	}
	// Whoever writes on a Node chooses its inline layers. What the cache has under a digest is published.
	lie := published.Layer{Digest: bundle.Of([]byte("other")), Inline: inlineOf(t)}
	if _, err := c.ReadLayer(t.Context(), lie); err == nil {
		t.Error("a layer under the digest of another one")
	}
	if _, ok := c.LookupLayer(lie.Digest); ok {
		t.Error("a layer under the digest of another one is kept")
	}
	if _, err := c.ReadLayer(t.Context(), published.Layer{Digest: bundle.Of([]byte("other"))}); err == nil {
		t.Error("a layer without Secrets")
	}
}

// inlineOf returns a layer of a node as an annotation has it.
func inlineOf(t *testing.T) []byte {
	t.Helper()
	packed, err := published.Pack(bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerNode, Stage: bundle.StageJoined})
	if err != nil || len(packed.Inline) == 0 {
		t.Fatalf("%d bytes, %v", len(packed.Inline), err)
	}
	return packed.Inline
}
