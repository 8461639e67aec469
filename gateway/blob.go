package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"

	_ "crypto/sha512" // digests of that kind

	"github.com/opencontainers/go-digest"

	"wmco/gateway/places"
)

// openRange is the range that containerd asks for when a layer has broken off, and the only one that can be continued elsewhere.
var openRange = regexp.MustCompile(`^bytes=([0-9]{1,18})-$`)

// contentRange is bytes first-last/size (RFC 9110, 14.4).
var contentRange = regexp.MustCompile(`^bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})$`)

// part is the answer of a place from a position of a layer to its end.
type part struct {
	place places.Place
	body  io.ReadCloser
	// begin is the position of the first byte, size that of the whole layer; -1 if the place does not send it.
	begin, size int64
}

// serveBlob passes on a layer. If a place breaks off in the middle, the rest comes from the next place.
func (h *Handler) serveBlob(w http.ResponseWriter, r *http.Request, t target, list []places.Place) ([]attempt, bool) {
	if r.Method == http.MethodHead {
		return h.serveBlobHead(w, r, t, list)
	}
	begin := int64(0)
	if m := openRange.FindStringSubmatch(r.Header.Get("Range")); m != nil {
		begin, _ = strconv.ParseInt(m[1], 10, 64) // at most 18 digits
	}
	var tried []attempt
	for i, p := range list {
		first, failed := h.askPart(r.Context(), t, p, begin)
		if failed != nil {
			tried = append(tried, *failed)
			continue
		}
		if first.size >= 0 && begin >= first.size && begin > 0 {
			_ = first.body.Close()
			w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", first.size))
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return nil, true
		}
		writeBlobHeader(w, t, begin, first.size)
		c := copying{h: h, w: w, t: t, list: list, at: i, position: begin, size: first.size}
		if begin == 0 {
			c.verifier = digest.Digest(t.Reference).Verifier()
		}
		if err := c.copyLayer(r.Context(), first); err != nil {
			h.log.Warn("a layer broke off", "image", t.String(), "position", c.position, "reason", err.Error())
			panic(http.ErrAbortHandler) // containerd asks again from where it is
		}
		h.log.Info("passed on", "image", t.String(), "kind", string(t.kind), "bytes", c.position-begin, "from", list[c.at].Name())
		return nil, true
	}
	return tried, false
}

func writeBlobHeader(w http.ResponseWriter, t target, begin, size int64) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set(digestHeader, t.Reference)
	if size >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(size-begin, 10))
	}
	if begin > 0 && size >= 0 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", begin, size-1, size))
		w.WriteHeader(http.StatusPartialContent)
	}
}

func (h *Handler) serveBlobHead(w http.ResponseWriter, r *http.Request, t target, list []places.Place) ([]attempt, bool) {
	var tried []attempt
	for _, p := range list {
		response, failed := h.askPlace(r.Context(), http.MethodHead, t, p, nil)
		if failed != nil {
			tried = append(tried, *failed)
			continue
		}
		_ = response.Body.Close()
		writeBlobHeader(w, t, 0, response.ContentLength)
		return nil, true
	}
	return tried, false
}

// askPart asks a place for a layer from a position on.
func (h *Handler) askPart(ctx context.Context, t target, p places.Place, begin int64) (part, *attempt) {
	header := http.Header{}
	if begin > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", begin))
	}
	response, failed := h.askPlace(ctx, http.MethodGet, t, p, header) //nolint:bodyclose // closing the part closes it
	if failed != nil {
		return part{}, failed
	}
	got := part{place: p, body: response.Body, size: response.ContentLength}
	if response.StatusCode == http.StatusPartialContent {
		m := contentRange.FindStringSubmatch(response.Header.Get("Content-Range"))
		if m == nil {
			_ = got.body.Close()
			return part{}, &attempt{place: p, text: "it sent another part than asked for"}
		}
		got.begin, _ = strconv.ParseInt(m[1], 10, 64)
		got.size, _ = strconv.ParseInt(m[3], 10, 64)
	}
	// A place that knows no ranges sends all.
	if _, err := io.CopyN(io.Discard, got.body, max(begin-got.begin, 0)); err != nil || got.begin > begin {
		_ = got.body.Close()
		return part{}, &attempt{place: p, text: "it sent another part than asked for"}
	}
	got.begin = begin
	return got, nil
}

// copying passes on a layer from several places.
type copying struct {
	h    *Handler
	w    io.Writer
	t    target
	list []places.Place
	// at is the place in the list that is read from.
	at             int
	position, size int64
	// verifier has read all bytes; nil for a part of a layer, which containerd verifies with the rest.
	verifier digest.Verifier
	// held are the last bytes, which are not sent before the digest is known to be right.
	held []byte
	used []places.Place
}

var errDigest = errors.New("the layer has another digest")

// copyLayer copies until the end of the layer. If no place goes on, it returns an error.
func (c *copying) copyLayer(ctx context.Context, from part) error {
	for idle := 0; ; {
		before := c.position
		c.used = append(c.used, from.place)
		whole, err := c.copyPart(from)
		if err != nil {
			return err
		}
		if whole {
			return c.endLayer()
		}
		c.h.noteOutcome(ctx, from.place, silent)
		if idle++; c.position > before {
			idle = 0
		}
		if idle > len(c.list) || ctx.Err() != nil {
			return errors.New("no place goes on from there")
		}
		if from, err = c.goOn(ctx); err != nil {
			return err
		}
	}
}

// goOn asks the other places for the rest, and at the end the one that broke off.
func (c *copying) goOn(ctx context.Context) (part, error) {
	for i := 1; i <= len(c.list); i++ {
		next := (c.at + i) % len(c.list)
		got, failed := c.h.askPart(ctx, c.t, c.list[next], c.position)
		if failed != nil {
			continue
		}
		if got.size >= 0 && c.size >= 0 && got.size != c.size {
			_ = got.body.Close()
			continue
		}
		c.at = next
		return got, nil
	}
	return part{}, errors.New("no place goes on from there")
}

// copyPart copies what a place sends, and reports whether it was all to the end. An error is one of writing.
func (c *copying) copyPart(from part) (bool, error) {
	defer func() { _ = from.body.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.body.Read(buffer)
		if c.size >= 0 && c.position+int64(n) > c.size {
			return false, errDigest
		}
		if n > 0 {
			if err := c.passOn(buffer[:n]); err != nil {
				return false, err
			}
			c.h.counts.addBytes(from.place, n)
		}
		switch {
		case errors.Is(err, io.EOF):
			return c.size < 0 || c.position == c.size, nil
		case err != nil:
			return c.size >= 0 && c.position == c.size, nil
		}
	}
}

func (c *copying) passOn(data []byte) error {
	c.position += int64(len(data))
	if c.verifier == nil {
		_, err := c.w.Write(data)
		return err //nolint:wrapcheck // the connection of containerd
	}
	_, _ = c.verifier.Write(data)
	if _, err := c.w.Write(c.held); err != nil {
		return err //nolint:wrapcheck // the connection of containerd
	}
	c.held = append(c.held[:0], data...)
	return nil
}

// endLayer sends the last bytes if the digest is right.
func (c *copying) endLayer() error {
	if c.verifier == nil {
		return nil
	}
	if !c.verifier.Verified() {
		for _, p := range c.used {
			c.h.health.distrust(p.Registry, c.h.now())
		}
		return errDigest
	}
	_, err := c.w.Write(c.held)
	return err //nolint:wrapcheck // the connection of containerd
}
