package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	"k8s.io/utils/lru"

	"wmco/gateway/places"
	"wmco/gateway/signatures"
)

// verification decides whether an image has the signatures that a policy demands.
type verification struct {
	// ask asks image-verifier. If it is nil, images under a policy are refused.
	ask func(context.Context, signatures.Question) (signatures.Answer, error)
	// turns limits concurrent questions: each is a process.
	turns chan struct{}
	// accepted are the positive verdicts, by verdictKey. Negative ones are not kept, because the image may be signed later.
	accepted *lru.Cache
}

const (
	maxVerdicts = 4096
	// maxVerifiers is less than kubelets pull at once.
	maxVerifiers = 2
)

func newVerification(ask func(context.Context, signatures.Question) (signatures.Answer, error)) verification {
	return verification{ask: ask, turns: make(chan struct{}, maxVerifiers), accepted: lru.New(maxVerdicts)}
}

// askInTurn asks image-verifier, with at most maxVerifiers questions at once.
func (v *verification) askInTurn(ctx context.Context, q signatures.Question) (signatures.Answer, error) {
	select {
	case v.turns <- struct{}{}:
	case <-ctx.Done():
		return signatures.Answer{}, ctx.Err()
	}
	defer func() { <-v.turns }()
	return v.ask(ctx, q)
}

// verdictKey is what a verdict depends on.
type verdictKey struct{ policy, image, digest string }

// lead is the name of an image that containerd resolved. What containerd pulls through it must satisfy the policy of this name, also the image that it
// chooses from an index. Linux nodes decide by this name too (containers/image, copy.copySingleImage).
type lead struct {
	name places.Image
	at   time.Time
	// ended is true if its pull was refused.
	ended bool
}

// leads are the names that recently led to a digest. containerd resolves and fetches over different connections and logins, so the gateway cannot tell to
// which pull a request belongs: the policies of all names must be satisfied.
type leads struct {
	mu   sync.Mutex
	list *lru.Cache
}

const (
	// leadLife is more than the time from resolving a name to the manifest of its image.
	leadLife = 10 * time.Minute
	// maxLed bounds the images of an index that needs signatures, and maxNames the names of one digest at a time.
	maxLed, maxNames = 1024, 64
)

func newLeads() *leads { return &leads{list: lru.New(maxLearned)} }

// namesLeadingTo returns the names whose policies apply: those that led to a digest, or its own.
func (l *leads) namesLeadingTo(i places.Image, now time.Time) []*lead {
	l.mu.Lock()
	defer l.mu.Unlock()
	if list := l.currentLeads(i, now); len(list) > 0 {
		return list
	}
	return []*lead{{name: i, at: now}}
}

// currentLeads returns the leads to a digest that have neither ended nor expired.
func (l *leads) currentLeads(i places.Image, now time.Time) (list []*lead) {
	v, ok := l.list.Get(i)
	if !ok {
		return nil
	}
	for _, x := range v.([]*lead) {
		if !x.ended && now.Sub(x.at) < leadLife {
			list = append(list, x)
		}
	}
	return list
}

// addLeads notes that names led to digests of a repository, and reports whether there was space for them.
func (l *leads) addLeads(of places.Image, digests []string, names []*lead, now time.Time) bool {
	if len(digests) > maxLed {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range digests {
		of.Reference = d
		list := l.currentLeads(of, now)
		for _, x := range names {
			if !slices.ContainsFunc(list, func(have *lead) bool { return have.name == x.name }) {
				list = append(list, x)
			}
		}
		if len(list) > maxNames {
			return false
		}
		l.list.Add(of, list)
	}
	return true
}

// endLead notes that the pull of a name was refused.
func (l *leads) endLead(x *lead) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x.ended = true
}

// refusal is why a policy refuses an image.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

// demand is a policy that applies to a target, and the name by which it was chosen.
type demand struct {
	lead   *lead
	policy places.Policy
}

// namesOf returns the names whose policies apply to a target. containerd sends HEAD only to resolve a name.
func (h *Handler) namesOf(t target, method string) []*lead {
	if !t.IsDigest() || method == http.MethodHead {
		return []*lead{{name: t.Image, at: h.now()}}
	}
	return h.leads.namesLeadingTo(t.Image, h.now())
}

// demandsOn returns the policies that apply to a target.
func (t target) demandsOn(names []*lead) (list []demand) {
	if t.kind != manifests {
		return nil
	}
	for _, x := range names {
		if policy, covered := t.table.PolicyFor(x.name); covered {
			list = append(list, demand{x, policy})
		}
	}
	return list
}

// checkSignatures returns why a manifest is not passed on; nil if it is.
func (h *Handler) checkSignatures(ctx context.Context, t target, p places.Place, m manifest, names []*lead) *attempt {
	ctx, cancel := context.WithTimeout(ctx, manifestLimit)
	defer cancel()
	err := h.verifyManifest(ctx, t, p, m, names)
	if err == nil {
		return nil
	}
	refused := (*refusal)(nil)
	return &attempt{place: p, text: err.Error(), refused: errors.As(err, &refused)}
}

// verifyManifest returns nil if a manifest may be passed on: no policy applies, its signatures satisfy the policies, or it is an index. Each image of an index
// is verified when it is requested. A *refusal is a verdict; any other error means that there is none.
func (h *Handler) verifyManifest(ctx context.Context, t target, p places.Place, m manifest, names []*lead) error {
	demands := t.demandsOn(names)
	children, isIndex := childrenOf(m.data)
	if !isIndex {
		for _, d := range demands {
			err := h.verifyImage(ctx, t, p, m, d)
			if refused := (*refusal)(nil); errors.As(err, &refused) {
				h.leads.endLead(d.lead)
			}
			if err != nil {
				return err
			}
		}
	}
	if t.kind == manifests && len(t.table.Policies) > 0 && !h.leads.addLeads(t.Image, append(children, m.digest), names, h.now()) && len(demands) > 0 {
		return fmt.Errorf("it has more than %d images, or %d names", maxLed, maxNames)
	}
	return nil
}

// verifyImage decides by one policy.
func (h *Handler) verifyImage(ctx context.Context, t target, p places.Place, m manifest, d demand) error {
	document, err := json.Marshal(map[string]any{"default": d.policy.Requirements})
	if err != nil {
		return fmt.Errorf("encoding a policy: %w", err)
	}
	name := d.lead.name.String()
	key := verdictKey{string(document), name, m.digest}
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
	answer, err := h.verification.askInTurn(ctx, signatures.Question{Image: name, Policy: document, Manifest: m.data, Signatures: list})
	if err != nil {
		return fmt.Errorf("verifying its signatures: %w", err)
	}
	if !answer.Accepted {
		return &refusal{"refused by " + strings.Join(d.policy.Objects, ", ") + ": " + answer.Reason}
	}
	h.verification.accepted.Add(key, true)
	return nil
}

// childrenOf returns the digests of the images of an index, and whether a manifest is one. A manifest that could also be an image does not count as an
// index, so its signatures are verified (containerd, core/images, validateMediaType).
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
	response, failed := h.askPlace(ctx, http.MethodGet, t, p, header)
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
