// Package publishtest publishes bundles for tests, without a rollout: every node is told at once.
package publishtest

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
)

// Publish publishes layers, and then tells the nodes of their bundles, with a permission to restart services.
func Publish(ctx context.Context, p *layers.Publisher, wanted ...layers.Wanted) error {
	if _, err := p.PublishLayers(ctx, wanted); err != nil {
		return err
	}
	for _, w := range wanted {
		text, err := w.DesiredAnnotation(p.Namespace, bundle.ImpactRestart).Encode()
		if err != nil {
			return err
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{published.DesiredAnnotation: text}}})
		if err != nil {
			return err
		}
		if err := p.Client.Patch(
			ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Node}},
			client.RawPatch(types.MergePatchType, patch),
		); err != nil {
			return err
		}
	}
	return nil
}

// Everyone is for layers.Publisher.Known: the host of every Windows Node is known.
func Everyone(context.Context, bool) (func(string, types.UID) bool, error) {
	return func(string, types.UID) bool { return true }, nil
}
