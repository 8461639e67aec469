package inuse

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather/objects"
	"wmco/controller/keys/signing"
	"wmco/controller/windowsnode"
	"wmco/internal/test/testenv/readonly"
)

const namespace = "operator"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// operator signs, and has its keys in a Secret.
type operator struct {
	*signing.Keys
	public []byte
	secret *corev1.Secret
}

func newOperator(t *testing.T) operator {
	t.Helper()
	c := fake.NewClientBuilder().Build()
	o := operator{Keys: &signing.Keys{Live: c, Client: c, Namespace: namespace, Now: time.Now}, secret: &corev1.Secret{}}
	must(t, o.BeginTerm(t.Context()))
	var err error
	o.public, err = o.ReadPublicKeys(t.Context())
	must(t, err)
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: signing.SecretName}, o.secret))
	o.secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	return o
}

// clusterWith reads a cluster with these Secrets, which refuses some requests.
func clusterWith(t *testing.T, refuses []string, secrets ...*corev1.Secret) objects.Reader {
	t.Helper()
	api := &readonly.API{Refuses: refuses}
	for _, s := range append(secrets, &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "another"}}) {
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
		must(t, err)
		api.Objects = append(api.Objects, unstructured.Unstructured{Object: u})
	}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	c, err := client.New(&rest.Config{Host: server.URL, QPS: -1}, client.Options{})
	must(t, err)
	return objects.NewClusterReader(c)
}

func TestKeysOfTheOperator(t *testing.T) {
	o := newOperator(t)
	secretWith := func(data map[string][]byte) *corev1.Secret {
		s := o.secret.DeepCopy()
		s.Data = data
		return s
	}
	const none = "the keys with which the operator signs are not known, so bundles bring none: "
	for _, c := range []struct {
		name    string
		refuses []string
		secrets []*corev1.Secret
		// keys are the known ones, in PEM; why begins the finding otherwise.
		keys, why string
	}{
		{name: "the Secret has a key", secrets: []*corev1.Secret{o.secret}, keys: string(o.public)},
		{name: "no operator has made the Secret", why: none + "the Secret does not exist"},
		{name: "the user may not read it", refuses: []string{"get secrets " + namespace}, secrets: []*corev1.Secret{o.secret}, why: none + "the user cannot get secrets in namespace operator"},
		{name: "the Secret has no key yet", secrets: []*corev1.Secret{secretWith(nil)}, why: none + "the Secret has no key"},
		{name: "the Secret holds something else", secrets: []*corev1.Secret{secretWith(map[string][]byte{"mine.pem": []byte("sesame")})}, why: none + "Secret operator/windows-desired-state-signing: mine.pem is not an Ed25519 key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys, findings, err := LookUpKeys(t.Context(), clusterWith(t, c.refuses, c.secrets...), namespace)
			must(t, err)
			text, err := keys.Encode()
			must(t, err)
			if diff := cmp.Diff(c.keys, string(text)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if c.why == "" {
				if len(findings) > 0 {
					t.Errorf("%+v", findings)
				}
				return
			}
			if len(findings) != 1 || !strings.HasPrefix(findings[0].Message, c.why) || findings[0].Severity != bundle.SeverityInfo || findings[0].Fix == "" || strings.Contains(findings[0].Message, "sesame") {
				t.Errorf("%+v", findings)
			}
		})
	}
}

// TestTheSecretOfTheKeysIsReadAlone: no other Secret of the operator is asked for, and an API server that is away is an error.
func TestTheSecretOfTheKeysIsReadAlone(t *testing.T) {
	if _, _, err := LookUpKeys(t.Context(), failing{}, namespace); !errors.Is(err, errAway) {
		t.Errorf("%v", err)
	}
}

var errAway = errors.New("away")

type failing struct{}

func (failing) Read(_ context.Context, wants []objects.Want) (objects.Set, error) {
	for _, w := range wants {
		if len(w.Names) != 1 || w.Names[0] != signing.SecretName {
			return objects.Set{}, errors.New("it asks for more than the Secret of the keys")
		}
	}
	return objects.Set{}, errAway
}

// TestOnlyWhatTheOperatorHasSignedIsInUse: whoever may write to Nodes can name any layer there.
func TestOnlyWhatTheOperatorHasSignedIsInUse(t *testing.T) {
	o, other := newOperator(t), newOperator(t)
	keys, err := published.DecodeKeys(o.public)
	must(t, err)
	layer := func(kind bundle.LayerKind) (bundle.Digest, bundle.Layer) {
		l := bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined}
		d, err := l.Digest()
		must(t, err)
		return d, l
	}
	cluster, clusterLayer := layer(bundle.LayerCluster)
	node, nodeLayer := layer(bundle.LayerNode)
	known := Layers{cluster: clusterLayer, node: nodeLayer}
	whole, err := bundle.DigestLayers(cluster, node)
	must(t, err)
	desired := published.Desired{Schema: published.Schema, Bundle: whole, MaxImpact: bundle.ImpactRestart, Namespace: namespace, Cluster: published.Layer{Digest: cluster, Parts: 1}, Node: published.Layer{Digest: node, Parts: 1}}
	unsigned, err := desired.Encode()
	must(t, err)
	signed := func(by operator, id published.NodeID) string {
		text, err := by.SignDesired(id, desired)
		must(t, err)
		return text
	}
	win1 := published.NodeID{Name: "win-1", UID: "uid-1"}
	for _, c := range []struct {
		name, text string
		layers     Layers
		opens      bool
	}{
		{"signed for this Node", signed(o, win1), known, true},
		{"signed for a Node of the same name before", signed(o, published.NodeID{Name: "win-1", UID: "uid-0"}), known, false},
		{"signed for another Node", signed(o, published.NodeID{Name: "win-2", UID: "uid-1"}), known, false},
		{"signed by another operator", signed(other, win1), known, false},
		{"not signed", unsigned, known, false},
		{"nothing", "", known, false},
		{"a layer is not known", signed(o, win1), Layers{cluster: clusterLayer}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			object := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: win1.Name, UID: "uid-1", Annotations: map[string]string{published.DesiredAnnotation: c.text}}}
			if b, err := c.layers.OpenSigned(windowsnode.Decode(object), keys); (err == nil) != c.opens || err == nil && b.Node.Kind != bundle.LayerNode {
				t.Errorf("%v, %+v", err, b)
			}
		})
	}
}

// TestNoPrivateKeyIsKept: the returned keys cannot sign.
func TestNoPrivateKeyIsKept(t *testing.T) {
	o := newOperator(t)
	keys, _, err := LookUpKeys(t.Context(), clusterWith(t, nil, o.secret), namespace)
	must(t, err)
	text, err := json.Marshal(keys)
	must(t, err)
	pem, err := keys.Encode()
	must(t, err)
	for _, private := range o.secret.Data {
		if strings.Contains(string(text)+string(pem), strings.Split(string(private), "\n")[1]) {
			t.Error("the private key is among what is returned")
		}
	}
	if len(keys) != 1 || len(keys[0]) != 32 || strings.Contains(string(pem), "PRIVATE") {
		t.Errorf("%d keys\n%s", len(keys), pem)
	}
}
