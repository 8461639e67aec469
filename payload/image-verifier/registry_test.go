package main

import (
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
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

const (
	typeImage = "application/vnd.oci.image.manifest.v1+json"
	typeIndex = "application/vnd.oci.image.index.v1+json"
)

// store is a registry without TLS, as registries at 127.0.0.1 may be. content is by path below /v2/.
type store struct {
	content map[string][]byte
	host    string
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{content: map[string][]byte{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "http://")
	return s
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v2/" {
		return
	}
	data, ok := s.content[strings.TrimPrefix(r.URL.Path, "/v2/")]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`))
		return
	}
	var manifest struct {
		MediaType string `json:"mediaType"`
	}
	if json.Unmarshal(data, &manifest) == nil {
		w.Header().Set("Content-Type", manifest.MediaType)
	}
	w.Header().Set("Docker-Content-Digest", digest.FromBytes(data).String())
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data)
}

func encodeJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// addManifest adds a manifest under its digest and tags, and returns the digest.
func (s *store) addManifest(t *testing.T, repository string, manifest map[string]any, tags ...string) string {
	t.Helper()
	data := encodeJSON(t, manifest)
	d := digest.FromBytes(data).String()
	for _, reference := range append(tags, d) {
		s.content[repository+"/manifests/"+reference] = data
	}
	return d
}

// addImage adds an image that differs by a text.
func (s *store) addImage(t *testing.T, repository, text string, tags ...string) string {
	t.Helper()
	blob := func(kind string) map[string]any {
		return map[string]any{"mediaType": kind, "digest": digest.FromString(text + kind), "size": 1}
	}
	return s.addManifest(t, repository, map[string]any{
		"schemaVersion": 2, "mediaType": typeImage, "config": blob("application/vnd.oci.image.config.v1+json"),
		"layers": []any{blob("application/vnd.oci.image.layer.v1.tar")},
	}, tags...)
}

func (s *store) addIndex(t *testing.T, repository, tag string, digests ...string) string {
	t.Helper()
	var list []map[string]any
	for _, d := range digests {
		list = append(list, map[string]any{"mediaType": typeImage, "digest": d, "size": 1, "platform": map[string]any{"os": "windows", "architecture": "amd64"}})
	}
	return s.addManifest(t, repository, map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": list}, tag)
}

// signature is one of cosign's: the name that it is for, and what it is of.
type attached struct {
	name, of    string
	key         *ecdsa.PrivateKey
	annotations map[string]string
	mediaType   string
}

// payloadOf is what a signature signs (github.com/sigstore/cosign, specs/SIGNATURE_SPEC.md).
func payloadOf(t *testing.T, name, of string) []byte {
	t.Helper()
	return encodeJSON(t, map[string]any{
		"critical": map[string]any{
			"identity": map[string]any{"docker-reference": name}, "image": map[string]any{"docker-manifest-digest": of},
			"type": "cosign container image signature",
		},
		"optional": nil,
	})
}

func signPayload(t *testing.T, key *ecdsa.PrivateKey, payload []byte) string {
	t.Helper()
	sum := sha256.Sum256(payload)
	signed, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(signed)
}

// attach attaches signatures to a digest, as cosign does.
func (s *store) attach(t *testing.T, repository, to string, list ...attached) {
	t.Helper()
	var layers []any
	for _, x := range list {
		payload := payloadOf(t, x.name, x.of)
		d := digest.FromBytes(payload).String()
		s.content[repository+"/blobs/"+d] = payload
		annotations := map[string]string{"dev.cosignproject.cosign/signature": signPayload(t, x.key, payload)}
		for k, v := range x.annotations {
			annotations[k] = v
		}
		layers = append(layers, map[string]any{"mediaType": x.mediaType, "digest": d, "size": len(payload), "annotations": annotations})
	}
	s.addManifest(t, repository, map[string]any{
		"schemaVersion": 2, "mediaType": typeImage, "layers": layers,
		"config": map[string]any{"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest.FromString("config"), "size": 6},
	}, strings.Replace(to, ":", "-", 1)+".sig")
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func publicPEM(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func (s attached) String() string {
	return fmt.Sprintf("signed as %s, of %.12s", s.name, strings.TrimPrefix(s.of, "sha256:"))
}
