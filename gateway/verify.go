package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	"k8s.io/utils/lru"

	"wmco/gateway/places"
	"wmco/gateway/signatures"
)

// verification decides whether an image has the signatures that a policy demands.
type verification struct {
	// ask asks image-verifier; nil if there is none, so that nothing passes that a policy is about.
	ask func(context.Context, signatures.Question) (signatures.Answer, error)
	// accepted are the verdicts, by verdictKey: those against an image are asked for again, because it may have been signed since.
	accepted *lru.Cache
}

const maxVerdicts = 4096

// verdictKey is what a verdict depends on. The signatures are of what the digest names.
type verdictKey struct{ policy, image, digest string }

// pull is what containerd has asked for with one login, which is for one image: where it names a digest, the image is the one that led there. Linux
// nodes decide about each image of an index by the name of the index (containers/image, copy.copySingleImage).
type pull struct {
	mu  sync.Mutex
	led map[string]places.Image
}

// maxLed is more than the images of an index and the tags of one pull.
const maxLed = 1024

// nameOf returns the image by whose name a policy is chosen.
func (p *pull) nameOf(i places.Image) places.Image {
	p.mu.Lock()
	defer p.mu.Unlock()
	if by, ok := p.led[i.Name()+"@"+i.Reference]; ok {
		return by
	}
	return i
}

// lead notes that an image led to digests of its repository, and reports whether there was space for them.
func (p *pull) lead(by places.Image, digests ...string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.led == nil {
		p.led = map[string]places.Image{}
	}
	for _, d := range digests {
		if p.led[by.Name()+"@"+d] = by; len(p.led) > maxLed {
			return false
		}
	}
	return true
}

// refusal is why a policy refuses an image.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

// findPolicy returns the policy about a target, and the image by whose name it was chosen.
func (t target) findPolicy() (policy places.Policy, by places.Image, covered bool) {
	if t.kind != manifests || len(t.table.Policies) == 0 {
		return places.Policy{}, t.Image, false
	}
	by = t.pull.nameOf(t.Image)
	policy, covered = t.table.PolicyFor(by)
	return policy, by, covered
}

// checkSignatures returns why a manifest is not passed on; nil if it is.
func (h *Handler) checkSignatures(ctx context.Context, t target, p places.Place, m manifest) *attempt {
	ctx, cancel := context.WithTimeout(ctx, manifestLimit)
	defer cancel()
	err := h.verifyManifest(ctx, t, p, m)
	if err == nil {
		return nil
	}
	refused := (*refusal)(nil)
	return &attempt{place: p, text: err.Error(), refused: errors.As(err, &refused)}
}

// verifyManifest returns nil if a manifest may be passed on: no policy is about it, its signatures satisfy the policy, or it is an index, of which each
// image is verified when it is asked for. A *refusal is a verdict; any other error means that there is none.
func (h *Handler) verifyManifest(ctx context.Context, t target, p places.Place, m manifest) error {
	policy, by, covered := t.findPolicy()
	children, isIndex := childrenOf(m.data)
	if t.kind == manifests && len(t.table.Policies) > 0 && !t.pull.lead(by, append(children, m.digest)...) && covered {
		return fmt.Errorf("it has too many images: more than %d", maxLed)
	}
	if !covered || isIndex {
		return nil
	}
	document, err := json.Marshal(map[string]any{"default": policy.Requirements})
	if err != nil {
		return fmt.Errorf("encoding a policy: %w", err)
	}
	key := verdictKey{string(document), by.String(), m.digest}
	if _, ok := h.verification.accepted.Get(key); ok {
		return nil
	}
	list, err := h.fetchSignatures(ctx, t, p, m.digest)
	if err != nil {
		return fmt.Errorf("reading its signatures: %w", err)
	}
	if h.verification.ask == nil {
		return errors.New("there is no program to verify its signatures")
	}
	answer, err := h.verification.ask(ctx, signatures.Question{Image: by.String(), Policy: document, Manifest: m.data, Signatures: list})
	if err != nil {
		return fmt.Errorf("verifying its signatures: %w", err)
	}
	if !answer.Accepted {
		return &refusal{"refused by " + strings.Join(policy.Objects, ", ") + ": " + answer.Reason}
	}
	h.verification.accepted.Add(key, true)
	return nil
}

// childrenOf returns the digests of the images of an index, and whether a manifest is one. What could be read as an image too is none, so that it is
// verified as an image (containerd, core/images, validateMediaType).
func childrenOf(data []byte) ([]string, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return nil, false
	}
	for name := range fields {
		for _, of := range []string{"config", "layers", "fsLayers", "blobs"} {
			if strings.EqualFold(name, of) { // as encoding/json compares names
				return nil, false
			}
		}
	}
	var index struct {
		Manifests []struct {
			Digest string `json:"digest"`
		} `json:"manifests"`
	}
	if json.Unmarshal(data, &index) != nil || index.Manifests == nil {
		return nil, false
	}
	var digests []string
	for _, d := range index.Manifests {
		digests = append(digests, d.Digest)
	}
	return digests, true
}

// imageManifest is the media type of manifests (github.com/opencontainers/image-spec, media-types.md).
const imageManifest = "application/vnd.oci.image.manifest.v1+json"

// maxSignatures bounds the signatures of an image, in bytes. Each has less than a kilobyte.
const maxSignatures = 4 << 20

// fetchSignatures returns the signatures of a manifest that the place has, as sigstore attaches them: none is no error
// (github.com/sigstore/cosign, specs/SIGNATURE_SPEC.md).
func (h *Handler) fetchSignatures(ctx context.Context, t target, p places.Place, of string) ([]signatures.Signature, error) {
	attached := t
	attached.Reference = strings.Replace(of, ":", "-", 1) + ".sig"
	data, failed := h.readAll(ctx, attached, p, http.Header{"Accept": {imageManifest}}, maxManifest)
	if failed != nil && failed.missing {
		return nil, nil
	}
	if failed != nil {
		return nil, errors.New(failed.text)
	}
	var m struct {
		MediaType string `json:"mediaType"`
		Layers    []struct {
			MediaType   string            `json:"mediaType"`
			Digest      digest.Digest     `json:"digest"`
			Annotations map[string]string `json:"annotations"`
		} `json:"layers"`
	}
	if err := json.Unmarshal(data, &m); err != nil || m.MediaType != "" && m.MediaType != imageManifest {
		return nil, fmt.Errorf("%s is not an image of signatures", attached.Reference)
	}
	var list []signatures.Signature
	left := int64(maxSignatures)
	for _, l := range m.Layers {
		if l.MediaType != signatures.MediaType || l.Digest.Validate() != nil {
			continue
		}
		layer := t
		layer.kind, layer.Reference = blobs, l.Digest.String()
		payload, failed := h.readAll(ctx, layer, p, nil, left)
		if failed != nil {
			return nil, errors.New(failed.text)
		}
		if !verifies(layer.Reference, payload) {
			return nil, errors.New("a signature has another digest")
		}
		left -= int64(len(payload))
		list = append(list, signatures.Signature{MIMEType: l.MediaType, Payload: payload, Annotations: l.Annotations})
	}
	return list, nil
}

// readAll returns what a place has, of a limited size in bytes.
func (h *Handler) readAll(ctx context.Context, t target, p places.Place, header http.Header, limit int64) ([]byte, *attempt) {
	response, failed := h.ask(ctx, http.MethodGet, t, p, header)
	if failed != nil {
		return nil, failed
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	switch {
	case err != nil:
		h.noteOutcome(ctx, p, silent)
		return nil, &attempt{place: p, text: "its answer ended early"}
	case int64(len(data)) > limit:
		return nil, &attempt{place: p, text: fmt.Sprintf("it sent more than %d bytes", limit)}
	}
	return data, nil
}
