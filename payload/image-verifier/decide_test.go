package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	mrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/signature"
	"go.podman.io/image/v5/types"

	"wmco/bundle"
	"wmco/gateway"
	"wmco/gateway/places"
	"wmco/gateway/registry"
	"wmco/gateway/signatures"
	"wmco/render/mirrors"
)

// askProgram answers a question as the program does, by its JSON.
func askProgram(t *testing.T, q signatures.Question) (signatures.Answer, error) {
	t.Helper()
	q.Schema = 1
	var out bytes.Buffer
	if err := signatures.AnswerQuestion(bytes.NewReader(encodeJSON(t, q)), &out, func(q signatures.Question) (signatures.Answer, error) {
		return decideImage(t.Context(), t.TempDir(), q)
	}); err != nil {
		return signatures.Answer{}, err
	}
	var a signatures.Answer
	return a, json.Unmarshal(out.Bytes(), &a)
}

// world is a registry with two images, an index of both, and policies about them.
type world struct {
	store    *store
	one, two string
	index    string
	policies []mirrors.SignaturePolicy
	allowed  []string
	signed   []attached
}

const (
	name       = "quay.io/team/app"
	repository = "mirror/app"
)

// newWorld draws policies and signatures. Some name what the images are called, some something else.
func newWorld(t *testing.T, r *mrand.Rand, keys []*ecdsa.PrivateKey) world {
	t.Helper()
	w := world{store: newStore(t)}
	w.one, w.two = w.store.addImage(t, repository, "one", "v1"), w.store.addImage(t, repository, "two", "v2")
	w.index = w.store.addIndex(t, repository, "all", w.one, w.two)
	pick := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	names := []string{
		name, name + ":v1", name + ":v2", name + ":all", name + "@" + w.one, name + "@" + w.index, "quay.io/team/other:v1", "vendor.example/app:v1", "vendor.example/app:all",
		"vendor.example/app", w.store.host + "/" + repository + ":v1", "not a name",
	}
	scopes := []string{
		"quay.io", "quay.io/team", name, name + ":v1", name + ":all", name + "@" + w.one, name + "@" + w.index, name + "@" + w.two, "*.io", "quay.io/te", "quay.io/team/app/sub", "other.io", "*.quay.io",
	}
	for range 1 + r.IntN(3) {
		p := mirrors.SignaturePolicy{Ref: bundle.Ref{Kind: "ClusterImagePolicy", Name: "p"}, Requirement: places.Requirement{
			Type: places.SigstoreSigned, KeyData: publicPEM(t, keys[r.IntN(len(keys))]),
			SignedIdentity: []places.Identity{
				{Type: "matchRepoDigestOrExact"},
				{Type: "matchRepository"},
				{Type: "exactRepository", DockerRepository: pick(name, "vendor.example/app")},
				{Type: "remapIdentity", Prefix: pick("quay.io", "quay.io/team", name, "other.io"), SignedPrefix: pick("vendor.example", "vendor.example/app", name)},
			}[r.IntN(4)],
		}}
		for range 1 + r.IntN(2) {
			p.Scopes = append(p.Scopes, pick(scopes...))
		}
		w.policies = append(w.policies, p)
	}
	if r.IntN(3) == 0 {
		w.allowed = []string{"quay.io", "other.io", "*.io", pick(scopes...)}
	}
	for _, to := range []string{w.one, w.two, w.index} {
		var list []attached
		for range r.IntN(4) {
			list = append(list, attached{
				name: pick(names...), of: pick(to, to, to, w.two), key: keys[r.IntN(len(keys))],
				mediaType: pick(signatures.MediaType, signatures.MediaType, signatures.MediaType, "application/vnd.dsse.envelope.v1+json"),
			})
		}
		if len(list) > 0 || r.IntN(2) == 0 {
			w.store.attach(t, repository, to, list...)
		}
		w.signed = append(w.signed, list...)
	}
	return w
}

// onLinux returns whether a Linux node pulls an image: what copy.Image of containers/image does with registries.conf, registries.d and policy.json as the
// machine-config-operator writes them (pkg/controller/container-runtime-config/helpers.go).
func (w world) onLinux(t *testing.T, text, instance string) (bool, string) {
	t.Helper()
	dir := t.TempDir()
	for file, content := range map[string]string{
		"registries.conf": fmt.Sprintf("[[registry]]\nlocation = %q\n[[registry.mirror]]\nlocation = %q\ninsecure = true\n", name, w.store.host+"/"+repository),
		"d/default.yaml":  "default-docker: {use-sigstore-attachments: true}\n", "auth.json": "{}",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600))
	}
	system := &types.SystemContext{
		SystemRegistriesConfPath: filepath.Join(dir, "registries.conf"), SystemRegistriesConfDirPath: filepath.Join(dir, "none"), RegistriesDirPath: filepath.Join(dir, "d"),
		AuthFilePath: filepath.Join(dir, "auth.json"),
	}
	policy, err := signature.NewPolicyFromBytes(w.policyFile(t))
	must(t, err)
	judge, err := signature.NewPolicyContext(policy)
	must(t, err)
	defer judge.Destroy() //nolint:errcheck // nothing is to be done
	reference, err := docker.ParseReference("//" + text)
	must(t, err)
	source, err := reference.NewImageSource(t.Context(), system)
	must(t, err)
	defer source.Close()
	top := image.UnparsedInstance(source, nil)
	_, kind, err := top.Manifest(t.Context())
	must(t, err)
	if manifest.MIMETypeIsMultiImage(kind) {
		d := digest.Digest(instance)
		top = image.UnparsedInstance(source, &d)
	}
	ok, why := judge.IsRunningImageAllowed(t.Context(), top)
	return ok, fmt.Sprint(why)
}

// policyFile is policy.json.
func (w world) policyFile(t *testing.T) []byte {
	t.Helper()
	scopes := map[string][]any{}
	accept := map[string]string{"type": "insecureAcceptAnything"}
	policy := map[string]any{"default": []any{accept}, "transports": map[string]any{"docker": scopes}}
	if len(w.allowed) > 0 {
		policy["default"] = []any{map[string]string{"type": "reject"}}
	}
	for _, p := range w.policies {
		for _, s := range p.Scopes {
			scopes[s] = append(scopes[s], p.Requirement)
		}
	}
	for _, a := range w.allowed {
		if scopes[a] == nil {
			scopes[a] = []any{accept}
		}
	}
	return encodeJSON(t, policy)
}

// onWindows returns whether containerd pulls an image through the gateway: it asks for the reference, for its digest, and for the image that it chooses of
// an index.
func (w world) onWindows(t *testing.T, table places.Table, text, instance string) (bool, string) {
	t.Helper()
	h := gateway.New(gateway.Options{
		Address: "127.0.0.1:1", Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: time.Now,
		Client: &registry.Client{Verified: http.DefaultTransport, Insecure: http.DefaultTransport, Now: time.Now},
		Verify: func(_ context.Context, q signatures.Question) (signatures.Answer, error) { return askProgram(t, q) },
		Random: func(b []byte) { b[0] = 1 },
	})
	h.SetTable(table)
	serve := func(method, path, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "https://127.0.0.1:1"+path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		return answer
	}
	var login struct{ Token string }
	must(t, json.Unmarshal(serve(http.MethodGet, "/token", "").Body.Bytes(), &login))
	const path = "/v2/team/app/manifests/"
	head := serve(http.MethodHead, path+strings.TrimLeft(strings.TrimPrefix(text, name), ":@")+"?ns=quay.io", login.Token)
	if head.Code != http.StatusOK {
		return false, head.Body.String()
	}
	chosen := []string{head.Header().Get("Docker-Content-Digest")}
	if instance != "" {
		chosen = append(chosen, instance)
	}
	for _, d := range chosen {
		if answer := serve(http.MethodGet, path+d+"?ns=quay.io", login.Token); answer.Code != http.StatusOK {
			return false, answer.Body.String()
		}
	}
	return true, ""
}

// TestImagesAreAcceptedAsOnLinuxNodes draws policies and signatures, and pulls by tag, by digest and from an index.
func TestImagesAreAcceptedAsOnLinuxNodes(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("WMCO_SEED"); text != "" {
		_, err := fmt.Sscan(text, &seed)
		must(t, err)
	}
	t.Logf("WMCO_SEED=%d", seed)
	r := mrand.New(mrand.NewPCG(seed, 0))
	keys := []*ecdsa.PrivateKey{newKey(t), newKey(t)}
	accepted, refused, unsigned := 0, 0, 0
	for range 150 {
		w := newWorld(t, r, keys)
		in := mirrors.Inputs{
			Scopes: mirrors.Scopes{Ref: bundle.Ref{Kind: "Image", Name: "cluster"}, Insecure: []string{w.store.host}, Allowed: w.allowed}, Policies: w.policies,
		}
		for _, kind := range []mirrors.SetKind{mirrors.DigestSet, mirrors.TagSet} {
			in.Sets = append(in.Sets, mirrors.Set{Kind: kind, Source: name, Mirrors: []string{w.store.host + "/" + repository}})
		}
		built := mirrors.Build(in, mirrors.Options{Mode: mirrors.Exact, Gateway: "127.0.0.1:1", PartialNever: mirrors.Closed})
		if built.Findings.Refused() {
			continue // the machine-config-operator refuses it too: a scope is in no allowed registry
		}
		data, err := built.Table.Encode()
		must(t, err)
		table, err := places.Decode(data)
		must(t, err)
		for _, pull := range []struct{ text, instance string }{
			{name + ":v1", ""}, {name + ":v2", ""}, {name + "@" + w.one, ""}, {name + "@" + w.two, ""}, {name + ":all", w.one}, {name + "@" + w.index, w.two},
		} {
			want, why := w.onLinux(t, pull.text, pull.instance)
			got, text := w.onWindows(t, table, pull.text, pull.instance)
			if want != got {
				t.Fatalf("%s %s: on Linux %t (%s), here %t (%s)\npolicies %s\nallowed %q\nsigned %v", pull.text, pull.instance, want, why, got, text, encodeJSON(t, table.Policies), w.allowed, w.signed)
			}
			switch {
			case strings.Contains(why, "no signature exists") && !strings.Contains(text, "no signature exists"):
				t.Errorf("%s: on Linux %s, here %s", pull.text, why, text)
			case strings.Contains(why, "no signature exists"):
				unsigned++
			case want:
				accepted++
			default:
				refused++
			}
		}
	}
	t.Logf("%d accepted, %d refused, %d without a signature", accepted, refused, unsigned)
	if accepted < 20 || refused < 20 || unsigned < 20 {
		t.Error("too few of one kind")
	}
}

// TestEachRootOfTrust has the signatures with which containers/image tests itself, and one of a CA of one's own.
func TestEachRootOfTrust(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.podman.io/image/v5").Output()
	must(t, err)
	read := func(path string) []byte {
		data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "signature", filepath.FromSlash(path)))
		must(t, err)
		return data
	}
	rekor, fulcio := read("internal/testdata/rekor.pub"), read("fixtures/fulcio_v1.crt.pem")
	key, second := read("fixtures/cosign.pub"), read("fixtures/cosign2.pub")
	matchRepository := places.Identity{Type: "matchRepository"}
	by := func(email, issuer string) places.Requirement {
		return places.Requirement{Fulcio: &places.Fulcio{CAData: fulcio, SubjectEmail: email, OIDCIssuer: issuer}, RekorPublicKeyData: rekor}
	}
	const github = "https://github.com/login/oauth"
	for what, c := range map[string]struct {
		image, folder string
		requirement   places.Requirement
		accepted      bool
	}{
		"key":                             {"192.168.64.2:5000/cosign-signed-single-sample", "valid", places.Requirement{KeyData: key}, true},
		"another key":                     {"192.168.64.2:5000/cosign-signed-single-sample", "valid", places.Requirement{KeyData: second}, false},
		"another image":                   {"192.168.64.2:5000/cosign-signed-single", "valid", places.Requirement{KeyData: key}, false},
		"key, not in the log":             {"192.168.64.2:5000/cosign-signed-single-sample", "valid", places.Requirement{KeyData: key, RekorPublicKeyData: rekor}, false},
		"key in the log":                  {"192.168.64.2:5000/cosign-signed/key-1", "key-rekor-valid", places.Requirement{KeyData: second, RekorPublicKeyData: rekor}, true},
		"key in another log":              {"192.168.64.2:5000/cosign-signed/key-1", "key-rekor-valid", places.Requirement{KeyData: second, RekorPublicKeyData: key}, false},
		"certificate of Fulcio":           {"192.168.64.2:5000/cosign-signed/fulcio-rekor-1", "fulcio-rekor-valid", by("mitr@redhat.com", github), true},
		"certificate of another person":   {"192.168.64.2:5000/cosign-signed/fulcio-rekor-1", "fulcio-rekor-valid", by("else@redhat.com", github), false},
		"certificate of another identity": {"192.168.64.2:5000/cosign-signed/fulcio-rekor-1", "fulcio-rekor-valid", by("mitr@redhat.com", "https://accounts.google.com"), false},
		"no certificate":                  {"192.168.64.2:5000/cosign-signed/key-1", "key-rekor-valid", by("mitr@redhat.com", github), false},
	} {
		folder := "fixtures/dir-img-cosign-" + c.folder
		_, text, _ := strings.Cut(string(read(folder+"/signature-1")), "\n")
		var s signatures.Signature
		must(t, json.Unmarshal([]byte(text), &s))
		c.requirement.Type, c.requirement.SignedIdentity = places.SigstoreSigned, matchRepository
		a, err := askProgram(t, signatures.Question{
			Image: c.image + ":latest", Policy: encodeJSON(t, map[string]any{"default": []any{c.requirement}}), Manifest: read(folder + "/manifest.json"),
			Signatures: []signatures.Signature{s},
		})
		if err != nil || a.Accepted != c.accepted || !a.Accepted && a.Reason == "" {
			t.Errorf("%s: %+v, %v", what, a, err)
		}
	}
}

// TestACAOfOnesOwn is the root of trust PKI.
func TestACAOfOnesOwn(t *testing.T) {
	t.Parallel()
	rootKey, key := newKey(t), newKey(t)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	certificate := func(c *x509.Certificate, of, by *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, c, root, of.Public(), by)
		must(t, err)
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: root.NotBefore, NotAfter: root.NotAfter, EmailAddresses: []string{"me@example.com"}, DNSNames: []string{"signer.example.com"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	ca, other, own := certificate(root, rootKey, rootKey), certificate(root, key, key), certificate(leaf, key, rootKey)
	image := []byte("{}")
	payload := payloadOf(t, name+":v1", digest.FromBytes(image).String())
	for what, c := range map[string]struct {
		pki      places.PKI
		accepted bool
	}{
		"email":            {places.PKI{CARootsData: ca, SubjectEmail: "me@example.com"}, true},
		"another email":    {places.PKI{CARootsData: ca, SubjectEmail: "you@example.com"}, false},
		"host":             {places.PKI{CARootsData: ca, SubjectHostname: "signer.example.com"}, true},
		"both":             {places.PKI{CARootsData: ca, SubjectEmail: "me@example.com", SubjectHostname: "signer.example.com"}, true},
		"both, one wrong":  {places.PKI{CARootsData: ca, SubjectEmail: "me@example.com", SubjectHostname: "other.example.com"}, false},
		"another CA":       {places.PKI{CARootsData: other, SubjectEmail: "me@example.com"}, false},
		"with middle ones": {places.PKI{CARootsData: ca, CAIntermediatesData: ca, SubjectEmail: "me@example.com"}, true},
	} {
		a, err := askProgram(t, signatures.Question{
			Image: name + ":v1", Manifest: image,
			Policy: encodeJSON(t, map[string]any{"default": []any{places.Requirement{Type: places.SigstoreSigned, PKI: &c.pki, SignedIdentity: places.Identity{Type: "matchRepoDigestOrExact"}}}}),
			Signatures: []signatures.Signature{{MIMEType: signatures.MediaType, Payload: payload, Annotations: map[string]string{
				"dev.cosignproject.cosign/signature": signPayload(t, key, payload), "dev.sigstore.cosign/certificate": string(own),
			}}},
		})
		if err != nil || a.Accepted != c.accepted {
			t.Errorf("%s: %+v, %v", what, a, err)
		}
	}
}

// TestWhatCannotBeAskedHasNoAnswer: the gateway passes nothing on then.
func TestWhatCannotBeAskedHasNoAnswer(t *testing.T) {
	t.Parallel()
	accept := json.RawMessage(`{"default":[{"type":"insecureAcceptAnything"}]}`)
	for what, q := range map[string]signatures.Question{
		"no policy":         {Image: name + ":v1", Policy: json.RawMessage(`{}`)},
		"an unknown policy": {Image: name + ":v1", Policy: json.RawMessage(`{"default":[{"type":"trustMe"}]}`)},
		"a short name":      {Image: "app:v1", Policy: accept},
		"no tag":            {Image: name, Policy: accept},
		"no name":           {Image: "", Policy: accept},
		"tag and digest":    {Image: name + ":v1@" + digest.FromString("").String(), Policy: accept},
	} {
		if a, err := askProgram(t, q); err == nil {
			t.Errorf("%s: %+v", what, a)
		}
	}
	if a, err := askProgram(t, signatures.Question{Image: name + ":v1", Policy: accept}); err != nil || !a.Accepted {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestTheProgramAnswers as the gateway asks it, and names its version.
func TestTheProgramAnswers(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "image-verifier")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "containers_image_openpgp", "-ldflags", "-X main.version=v0.0.1", "-o", program, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ask := signatures.Program{Path: program, Folder: t.TempDir()}
	missing := signatures.Program{Path: program + "x", Folder: ask.Folder}
	requirement := places.Requirement{Type: places.SigstoreSigned, KeyData: publicPEM(t, newKey(t)), SignedIdentity: places.Identity{Type: "matchRepository"}}
	a, err := ask.Ask(t.Context(), signatures.Question{
		Image: name + ":v1", Manifest: []byte("{}"), Policy: encodeJSON(t, map[string]any{"default": []any{requirement}}),
	})
	if err != nil || a.Accepted || !strings.Contains(a.Reason, "no signature exists") {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := ask.Ask(t.Context(), signatures.Question{Image: name}); err == nil || !strings.Contains(err.Error(), "reading the policy") {
		t.Errorf("%v", err)
	}
	if _, err := missing.Ask(t.Context(), signatures.Question{}); err == nil {
		t.Error("a program that is not there has answered")
	}
	if left, err := os.ReadDir(ask.Folder); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	if out, err := exec.CommandContext(t.Context(), program, "version").Output(); err != nil || !slices.Contains(strings.Fields(string(out)), "v0.0.1") {
		t.Errorf("%s, %v", out, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
