package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"wmco/gateway/places"
	"wmco/gateway/registry"
)

// serveTarget passes on the answer of the first place that has the image.
func (h *Handler) serveTarget(w http.ResponseWriter, r *http.Request, t target, d places.Decision) {
	serve := h.serveManifest
	if t.kind == blobs {
		serve = h.serveBlob
	}
	tried, served := serve(w, r, t, d.Places)
	if served {
		h.troubles.noteOutcome(t.Registry, "", h.now())
		return
	}
	text := describe(t, d, tried)
	h.log.Warn("an image could not be pulled", "image", t.String(), "kind", string(t.kind), "reason", text)
	status, why := http.StatusBadGateway, causePlaces
	switch {
	case len(d.Places) == 0:
		status, why = http.StatusForbidden, causeConfiguration
	case isRefused(tried):
		h.troubles.noteOutcome(t.Registry, "", h.now())
		status, why = http.StatusForbidden, causePolicy
	case isMissing(tried):
		h.troubles.noteOutcome(t.Registry, "", h.now())
		if len(d.Skipped) == 0 {
			http.Error(w, text, http.StatusNotFound)
			return
		}
	case r.Context().Err() == nil: // else containerd has given up
		h.troubles.noteOutcome(t.Registry, text, h.now())
	}
	h.counts.addRefused(t.Registry, why)
	refusePull(w, r, status, text)
}

// isMissing reports whether all places answered that they have no such image.
func isMissing(tried []attempt) bool {
	for _, a := range tried {
		if !a.missing {
			return false
		}
	}
	return true
}

// askPlace asks one place, and returns its answer if it has what is asked for. Otherwise it returns how the place answered.
func (h *Handler) askPlace(ctx context.Context, method string, t target, p places.Place, header http.Header) (*http.Response, *attempt) {
	response, err := h.client.Do(ctx, registry.Request{Method: method, Place: p, Path: t.contentPath(), Auth: t.authAt(p), Header: header})
	if err != nil {
		denied := (*registry.TokenError)(nil)
		o := silent
		if errors.As(err, &denied) && denied.Status < http.StatusInternalServerError {
			o = answered
		}
		if ctx.Err() == nil { // else containerd has given up
			h.counts.addRequest(p, resultFailed)
		}
		h.noteOutcome(ctx, p, o)
		return nil, &attempt{place: p, text: err.Error()}
	}
	status := response.StatusCode
	o := answered
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
		o = silent
	}
	h.noteOutcome(ctx, p, o)
	switch status {
	case http.StatusOK, http.StatusPartialContent:
		h.counts.addRequest(p, resultServed)
		return response, nil
	case http.StatusNotFound:
		h.counts.addRequest(p, resultMissing)
	default:
		h.counts.addRequest(p, resultFailed)
	}
	_ = response.Body.Close()
	return nil, &attempt{
		place: p, missing: status == http.StatusNotFound, text: strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status)),
	}
}

// noteOutcome notes whether a place answered. A request that containerd canceled does not count.
func (h *Handler) noteOutcome(ctx context.Context, p places.Place, o outcome) {
	if ctx.Err() == nil {
		h.health.noteOutcome(p.Registry, o, h.now())
	}
}

// maxManifest is the size of the largest manifest in bytes (github.com/opencontainers/distribution-spec, Pushing Manifests).
const maxManifest = 4 << 20

// manifest is a manifest, or a list of referrers.
type manifest struct {
	mediaType, digest string
	length            int64
	// data is empty for an answer to HEAD, unless a policy is about it.
	data []byte
}

func (h *Handler) serveManifest(w http.ResponseWriter, r *http.Request, t target, list []places.Place) ([]attempt, bool) {
	var tried []attempt
	names := h.namesOf(t, r.Method)
	method := r.Method
	if len(t.demandsOn(names)) > 0 {
		method = http.MethodGet
	}
	for _, p := range list {
		m, failed := h.fetchManifest(r, method, t, p)
		if failed == nil {
			failed = h.checkSignatures(r.Context(), t, p, m, names)
		}
		if failed != nil {
			tried = append(tried, *failed)
			if failed.refused { // Linux nodes take an image from the first place that has it, or not at all
				break
			}
			continue
		}
		if !t.IsDigest() {
			h.learned.addDigest(t.Image, m.digest, p, list)
		}
		of := t.Image
		of.Reference = m.digest
		h.learned.addChildren(of, m.data)
		w.Header().Set("Content-Type", m.mediaType)
		w.Header().Set("Content-Length", strconv.FormatInt(m.length, 10))
		if m.digest != "" {
			w.Header().Set("Docker-Content-Digest", m.digest)
		}
		if r.Method == http.MethodGet {
			_, _ = w.Write(m.data)
			h.counts.addBytes(p, len(m.data))
		}
		h.log.Info("passed on", "image", t.String(), "kind", string(t.kind), "method", r.Method, "from", p.Name())
		return nil, true
	}
	return tried, false
}

// fetchManifest returns what a place has, and its content if the method is GET. A place that does not name the digest of a tag is asked for the whole manifest.
func (h *Handler) fetchManifest(r *http.Request, method string, t target, p places.Place) (manifest, *attempt) {
	ctx, cancel := context.WithTimeout(r.Context(), manifestLimit)
	defer cancel()
	header := http.Header{}
	if accept := r.Header.Values("Accept"); len(accept) > 0 {
		header["Accept"] = accept
	}
	response, failed := h.askPlace(ctx, method, t, p, header)
	if failed == nil && method == http.MethodHead && (!t.IsDigest() && digest.Digest(response.Header.Get(digestHeader)).Validate() != nil || response.ContentLength < 0) {
		_ = response.Body.Close()
		method = http.MethodGet
		response, failed = h.askPlace(ctx, method, t, p, header)
	}
	if failed != nil {
		return manifest{}, failed
	}
	defer func() { _ = response.Body.Close() }()
	m := manifest{mediaType: response.Header.Get("Content-Type"), length: response.ContentLength, digest: response.Header.Get(digestHeader)}
	if t.IsDigest() && t.kind == manifests {
		m.digest = t.Reference
	}
	if method == http.MethodHead {
		return m, nil
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxManifest+1))
	switch {
	case err != nil:
		h.noteOutcome(r.Context(), p, silent)
		return manifest{}, &attempt{place: p, text: "its answer ended early"}
	case len(data) > maxManifest:
		return manifest{}, &attempt{place: p, text: fmt.Sprintf("its manifest is larger than %d MiB", maxManifest>>20)}
	case t.kind == referrers:
		m.digest = ""
	case !t.IsDigest():
		m.digest = digest.FromBytes(data).String()
	case !verifies(t.Reference, data):
		h.health.distrust(p.Registry, h.now())
		return manifest{}, &attempt{place: p, text: "its manifest has another digest"}
	}
	m.data, m.length = data, int64(len(data))
	return m, nil
}

const (
	digestHeader = "Docker-Content-Digest"
	// manifestLimit is how long one place has for a manifest, with its token.
	manifestLimit = time.Minute
)

func verifies(reference string, data []byte) bool {
	v := digest.Digest(reference).Verifier()
	_, _ = v.Write(data)
	return v.Verified()
}
