package layers

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"wmco/bundle"
	"wmco/bundle/published"
)

// A layer of several Secrets is opened whatever their order, and not without one of them.
func TestLayersOfSeveralSecrets(t *testing.T) {
	data := make([]byte, 2*published.PartSize)
	for i, x := 0, uint32(1); i < len(data); i++ { // what a compressor cannot make smaller
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		data[i] = byte(x)
	}
	packed, err := published.Pack(bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoined, Files: []bundle.File{{
		Path: `C:\k\a`, Digest: bundle.Of(data), Size: int64(len(data)), Access: bundle.AccessUsers, Impact: bundle.ImpactNone, Content: bundle.Content{Data: data},
	}}})
	if err != nil || packed.Parts < 2 {
		t.Fatalf("%d parts: %v", packed.Parts, err)
	}
	var secrets []corev1.Secret
	for _, p := range packed.Secrets {
		secrets = append(secrets, *Secret{Part: p, Label: packed.Label()}.SecretObject(namespace))
	}
	slices.Reverse(secrets)
	if l, err := OpenLayer(packed.Digest, secrets); err != nil || len(l.Files) != 1 || len(l.Files[0].Content.Data) != len(data) {
		t.Errorf("%v, %v", l.IDs(), err)
	}
	if _, err := OpenLayer(packed.Digest, secrets[1:]); err == nil {
		t.Error("a layer without one of its parts is opened")
	}
}
