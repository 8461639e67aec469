package layers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
)

// ReadLayer reads a published layer from the Secrets of a namespace.
func ReadLayer(ctx context.Context, r client.Reader, namespace string, d bundle.Digest) (bundle.Layer, error) {
	var list corev1.SecretList
	if err := r.List(ctx, &list, client.InNamespace(namespace),
		client.MatchingLabels{published.LayerLabel: published.Label(d)}); err != nil {
		return bundle.Layer{}, fmt.Errorf("listing the Secrets of layer %s: %w", d.Short(), err)
	}
	return OpenLayer(d, list.Items)
}

// OpenLayer returns the layer in secrets, which must be all Secrets with its label. An incomplete layer, or one with another
// digest, is an error.
func OpenLayer(d bundle.Digest, secrets []corev1.Secret) (bundle.Layer, error) {
	data := map[string][]byte{}
	for _, s := range secrets {
		data[s.Name] = s.Data[published.SecretKey]
	}
	layer := published.Layer{Digest: d, Parts: len(secrets)}
	var parts [][]byte
	for _, name := range layer.Names() {
		parts = append(parts, data[name])
	}
	return layer.Open(parts)
}
