package rollout

import (
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/inputs/desired"
	"wmco/controller/keys/signing"
	"wmco/controller/layers"
	"wmco/controller/windowsnode"
	"wmco/render"
)

// TestAKeptBundleIsOneThatTheOperatorHasSigned: a node that waits for executables keeps its signed bundle. One that others have written on
// its Node is not kept, as that would be signed.
func TestAKeptBundleIsOneThatTheOperatorHasSigned(t *testing.T) {
	layer := func(kind bundle.LayerKind) bundle.Layer {
		return bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined}
	}
	b := bundle.Bundle{Cluster: layer(bundle.LayerCluster), Node: layer(bundle.LayerNode)}
	packed, err := published.Pack(b.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	w, err := layers.PackBundle("win-a", b)
	if err != nil {
		t.Fatal(err)
	}
	told := w.DesiredAnnotation("operator", bundle.ImpactRestart)
	told.Payload = bundle.Of([]byte("older executables"))
	build := fake.NewClientBuilder()
	for _, p := range packed.Secrets {
		build.WithObjects(layers.Secret{Part: p, Label: packed.Label()}.SecretObject("operator"))
	}
	c := build.Build()
	keys := &signing.Keys{Live: c, Client: c, Namespace: "operator", Now: time.Now}
	if err := keys.BeginTerm(t.Context()); err != nil {
		t.Fatal(err)
	}
	signed, err := keys.SignDesired(published.NodeID{Name: "win-a"}, told)
	unsigned, plain := told.Encode()
	if err := errors.Join(err, plain); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		text string
		want bool
	}{"signed": {signed, true}, "not signed": {unsigned, false}} {
		k := &keeper{cache: &layers.Cache{Live: c, Namespace: "operator"}, readDesired: windowsnode.VerifyWith(keys.OpenDesired), log: logr.Discard()}
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-a", Annotations: map[string]string{published.DesiredAnnotation: tt.text, published.VersionAnnotation: "1"}}}
		list := []desired.Rendered{{Node: render.Node{Name: "win-a"}, Bundle: render.Bundle{Bundle: b}}}
		if kept := k.keepWaitingBundles(t.Context(), list, []windowsnode.Node{windowsnode.Decode(node)}, bundle.Of([]byte("newer executables"))); (len(kept) == 1) != tt.want {
			t.Errorf("%s: %v", name, kept)
		}
	}
}
