package winnode

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/desired"
	"wmco/gateway/identity"
	"wmco/gateway/places"
	"wmco/internal/test/winetest"
	"wmco/internal/test/winnode/stubpayload"
	"wmco/layout"
	"wmco/payload"
	"wmco/payload/store"
)

// storeAddress is a registry without TLS, in the network of the machine.
const storeAddress = "127.0.0.1:5000"

// registryStore is what the registry has, by path below /v2/, and what it was asked for.
type registryStore struct {
	content map[string][]byte

	mu    sync.Mutex
	asked []string
}

// ServeHTTP implements http.Handler.
func (s *registryStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	s.mu.Lock()
	s.asked = append(s.asked, path)
	s.mu.Unlock()
	data, ok := s.content[path]
	if !ok && path != "" {
		http.NotFound(w, r)
		return
	}
	if strings.Contains(path, "/manifests/") {
		w.Header().Set("Content-Type", manifestType)
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(data).String())
	}
	_, _ = w.Write(data)
}

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
)

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// blob is a layer, or a configuration.
type blob struct {
	mediaType   string
	data        []byte
	annotations map[string]string
}

// add adds an image with a tag, and returns its digest.
func (s *registryStore) add(t *testing.T, repository, tag string, config blob, layers ...blob) digest.Digest {
	t.Helper()
	describe := func(b blob) map[string]any {
		d := digest.FromBytes(b.data)
		s.content[repository+"/blobs/"+d.String()] = b.data
		return map[string]any{"mediaType": b.mediaType, "digest": d, "size": len(b.data), "annotations": b.annotations}
	}
	var list []any
	for _, l := range layers {
		list = append(list, describe(l))
	}
	data := encoded(t, map[string]any{"schemaVersion": 2, "mediaType": manifestType, "config": describe(config), "layers": list})
	d := digest.FromBytes(data)
	s.content[repository+"/manifests/"+tag], s.content[repository+"/manifests/"+d.String()] = data, data
	return d
}

// sign attaches a signature to an image, as cosign does (github.com/sigstore/cosign, specs/SIGNATURE_SPEC.md).
func (s *registryStore) sign(t *testing.T, key *ecdsa.PrivateKey, repository, name string, of digest.Digest) {
	t.Helper()
	text := encoded(t, map[string]any{"critical": map[string]any{
		"identity": map[string]any{"docker-reference": name}, "image": map[string]any{"docker-manifest-digest": of}, "type": "cosign container image signature",
	}, "optional": nil})
	sum := sha256.Sum256(text)
	signed, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	s.add(t, repository, strings.Replace(of.String(), ":", "-", 1)+".sig", blob{mediaType: configType, data: []byte("{}")}, blob{
		mediaType: "application/vnd.dev.cosign.simplesigning.v1+json", data: text,
		annotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signed)},
	})
}

// gatewayNode is a host with a rendered bundle in which mirrors.mode is Exact, beside a registry.
type gatewayNode struct {
	machine
	store *registryStore
	// folder has the objects of the cluster, payload the executables.
	folder, payload string
}

// TestTheImageGatewayOnWindows runs the services of a rendered bundle with mirrors.mode Exact: the gateway, and image-verifier for it. The resolvers of
// containerd, built for Windows, pull through them by the hosts files of the node, with certificates at paths of Windows.
func TestTheImageGatewayOnWindows(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	n := newGatewayNode(t, key)
	defer func() {
		if t.Failed() {
			t.Log(n.gatewayLog(t))
		}
	}()
	images := map[string]digest.Digest{}
	for _, name := range []string{"signed", "unsigned", "renamed"} {
		images[name] = n.store.add(t, "store/"+name, "1", blob{mediaType: configType, data: encoded(t, map[string]any{"author": name, "os": "windows", "architecture": "amd64"})},
			blob{mediaType: "application/vnd.oci.image.layer.v1.tar", data: bytes.Repeat([]byte(name), 1<<16)})
	}
	n.store.sign(t, key, "store/signed", "quay.io/team/signed:1", images["signed"])
	n.store.sign(t, key, "store/renamed", "quay.io/other/name:1", images["renamed"])
	n.applied(t)

	n.pulls(t, map[string]string{
		"quay.io/team/signed:1":    " " + images["signed"].String(),
		"quay.io/team/unsigned:1":  "refused by ClusterImagePolicy/team: A signature was required, but no signature exists",
		"quay.io/team/renamed:1":   "refused by ClusterImagePolicy/team: Signature for identity",
		"quay.io/blocked/signed:1": "quay.io/blocked is blocked (Image/cluster)",
	})

	certificate := n.ReadFile(t, places.State+`\`+identity.Client)
	n.policy(t, key, "quay.io/elsewhere")
	n.applied(t)
	n.pulls(t, map[string]string{"quay.io/team/unsigned:1": " " + images["unsigned"].String()})
	if got := strings.Count(n.gatewayLog(t), "msg=started"); got != 1 {
		t.Errorf("another table restarts the gateway: it was started %d times", got)
	}

	n.service(t, "stop", "STOPPED")
	if text := n.query(t); !strings.Contains(text, "WIN32_EXIT_CODE    : 0 ") {
		t.Errorf("the exit code is not 0: %s", text)
	}
	n.pulls(t, map[string]string{"quay.io/team/signed:1": "connect"})
	n.service(t, "start", "RUNNING")
	n.pulls(t, map[string]string{"quay.io/team/signed:1": " " + images["signed"].String()})
	if !bytes.Equal(certificate, n.ReadFile(t, places.State+`\`+identity.Client)) {
		t.Error("the certificate of containerd has changed")
	}
	numbers := string(n.ReadFile(t, places.Metrics+`\`+bundle.Base(places.CountsFile)))
	if !strings.Contains(numbers, `wmco_image_gateway_bytes_total{place="`+storeAddress+`"}`) {
		t.Errorf("the numbers: %s", numbers)
	}
	for _, path := range n.store.asked {
		if path != "" && !strings.HasPrefix(path, "store/") {
			t.Errorf("the registry was asked for %s", path)
		}
	}
}

func newGatewayNode(t *testing.T, key *ecdsa.PrivateKey) *gatewayNode {
	t.Helper()
	n := &gatewayNode{machine: newMachine(t), store: &registryStore{content: map[string][]byte{}}, folder: t.TempDir(), payload: t.TempDir()}
	n.AddAdapter(t, netip.MustParseAddr(pullAddress))
	server := &http.Server{Handler: n.store} //nolint:gosec // slow clients are not what is tested
	go func() { _ = server.Serve(n.Listen(t, storeAddress)) }()
	t.Cleanup(func() { _ = server.Close() })
	b := build(t)
	err := stubpayload.Write(n.payload, stubpayload.Programs{
		Service: b.service, Runner: b.runner, Agent: b.node, Version: "test",
		Built: map[string][]byte{payload.Verifier: winetest.Program(t, filepath.Join(module, "payload", "image-verifier"), ".")},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.WriteFile(t, pullProgram, winetest.Program(t, filepath.Join(module, "internal", "verify", "resolvers"), "./pull"))
	n.object(t, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "windows-machine-config", "namespace": gather.OperatorNamespace},
		"data": map[string]any{"config.yaml": "mirrors:\n  mode: Exact\n"},
	})
	n.object(t, map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ImageTagMirrorSet", "metadata": map[string]any{"name": "team"},
		"spec": map[string]any{"imageTagMirrors": []any{map[string]any{"source": "quay.io/team", "mirrors": []any{storeAddress + "/store"}, "mirrorSourcePolicy": "NeverContactSource"}}},
	})
	n.object(t, map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{"registrySources": map[string]any{"insecureRegistries": []any{storeAddress}, "blockedRegistries": []any{"quay.io/blocked"}}},
	})
	n.policy(t, key, "quay.io/team")
	return n
}

// object writes an object of the cluster.
func (n *gatewayNode) object(t *testing.T, object map[string]any) {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err == nil {
		err = os.WriteFile(filepath.Join(n.folder, fmt.Sprint(object["kind"], ".yaml")), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// policy demands signatures with a key for the images of a scope.
func (n *gatewayNode) policy(t *testing.T, key *ecdsa.PrivateKey, scope string) {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	n.object(t, map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterImagePolicy", "metadata": map[string]any{"name": "team"},
		"spec": map[string]any{"scopes": []any{scope}, "policy": map[string]any{"rootOfTrust": map[string]any{
			"policyType": "PublicKey", "publicKey": map[string]any{"keyData": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})},
		}}},
	})
}

// applied applies the bundle that is rendered from the objects.
func (n *gatewayNode) applied(t *testing.T) {
	t.Helper()
	set, err := store.Read(t.Context(), n.payload)
	if err != nil {
		t.Fatal(err)
	}
	clusters := filepath.Join(module, "golden", "clusters")
	stream := n.archiveOf(t, n.payload, desired.Source{
		Objects: objects.NewPathsReader([]string{filepath.Join(clusters, "common"), filepath.Join(clusters, "none"), n.folder}, nil),
		Gather:  gather.Options{Namespace: gather.OperatorNamespace, Complete: true}, Set: set, Key: bundle.Key("a key of the user"),
	})
	if r := n.wmco(t, stream, "apply"); r.ExitCode != 0 {
		t.Fatalf("%+v", r)
	}
}

// pullProgram is internal/verify/resolvers/pull.
const pullProgram = `C:\pull.exe`

// pulls pulls images with all versions of containerd. want has a part of what each pull prints.
func (n *gatewayNode) pulls(t *testing.T, want map[string]string) {
	t.Helper()
	for image, part := range want {
		r := n.Run(t, winetest.Command{Path: pullProgram, Args: []string{`C:\k\containerd\registries`, image}})
		lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
		for _, line := range lines {
			if len(lines) != 2 || !strings.Contains(line, part) {
				t.Errorf("%s: %q is missing in %s", image, part, line)
			}
		}
	}
}

func (n *gatewayNode) gatewayLog(t *testing.T) string {
	t.Helper()
	return string(n.ReadFile(t, `C:\var\log\image-gateway\image-gateway.log`))
}

func (n *gatewayNode) query(t *testing.T) string {
	t.Helper()
	return n.Run(t, winetest.Command{Path: "sc", Args: []string{"query", layout.Gateway}}).Stdout
}

// service starts or stops the gateway.
func (n *gatewayNode) service(t *testing.T, verb, state string) {
	t.Helper()
	n.Run(t, winetest.Command{Path: "sc", Args: []string{verb, layout.Gateway}})
	eventually(t, "the gateway is "+state, func() bool { return strings.Contains(n.query(t), state) })
}
