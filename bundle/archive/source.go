package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
)

// Source provides contents in their stored form.
type Source interface {
	// Contents returns the available contents. Contents with the same SHA256 have the same Size and Stored.
	Contents() []Content
	// Open returns the stored form of the content with this SHA-256, in hex. A content that does not exist is
	// fs.ErrNotExist. The reader may be an io.Seeker, which makes skipping parts cheap.
	Open(sha256 string) (io.ReadCloser, error)
}

// FromBundle returns the contents in the bundle, compressed in memory. Entries without data are left out: another
// source has their contents. A preview is ErrMasked, and content that does not match its entry is an error.
func FromBundle(b bundle.Bundle) (Source, error) {
	s := &memory{stored: map[string][]byte{}, seen: map[bundle.Digest]bool{}, encoder: newStoredEncoder(nil)}
	for _, l := range b.Layers() {
		for _, n := range namedIn(l) {
			if err := s.addContent(n); err != nil {
				return nil, fmt.Errorf("taking the content of %s: %w", n.entry, err)
			}
		}
	}
	s.encoder = nil
	sortContents(s.contents)
	return s, nil
}

type memory struct {
	contents []Content
	stored   map[string][]byte
	seen     map[bundle.Digest]bool
	encoder  *zstd.Encoder
}

func (s *memory) addContent(n named) error {
	if n.digest == bundle.Masked {
		return ErrMasked
	}
	if n.content == nil || n.content.Data == nil {
		return nil
	}
	raw := n.content.Data
	if n.size != 0 && n.size != int64(len(raw)) {
		return fmt.Errorf("it has %d bytes, the entry has %d", len(raw), n.size)
	}
	if s.seen[n.digest] {
		return nil
	}
	s.seen[n.digest] = true
	sum := sha256.Sum256(raw)
	name := hex.EncodeToString(sum[:])
	s.storePart(name, raw)
	c := Content{Digest: n.digest, SHA256: name, Size: int64(len(raw)), Stored: int64(len(s.stored[name]))}
	s.contents = append(s.contents, c)
	return c.Validate()
}

func (s *memory) storePart(name string, raw []byte) {
	if s.stored[name] != nil {
		return
	}
	var out bytes.Buffer
	s.encoder.Reset(&out)
	compress(s.encoder, raw)
	s.stored[name] = out.Bytes()
}

func (s *memory) Contents() []Content { return slices.Clone(s.contents) }

func (s *memory) Open(sha256 string) (io.ReadCloser, error) {
	stored, ok := s.stored[sha256]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return opened{bytes.NewReader(stored)}, nil
}

// opened makes a reader in memory closable and keeps it seekable.
type opened struct{ *bytes.Reader }

func (opened) Close() error { return nil }

// Join returns the contents of all the sources. A content that several of them have comes from the first.
func Join(sources ...Source) Source {
	j := &joined{from: map[string]Source{}}
	first, seen := map[string]Content{}, map[bundle.Digest]bool{}
	for _, s := range sources {
		for _, c := range s.Contents() {
			if _, ok := first[c.SHA256]; !ok {
				first[c.SHA256], j.from[c.SHA256] = c, s
			}
			if !seen[c.Digest] {
				// The stored form may differ between sources; it is described as Open will return it.
				seen[c.Digest], c.Stored = true, first[c.SHA256].Stored
				j.contents = append(j.contents, c)
			}
		}
	}
	sortContents(j.contents)
	return j
}

type joined struct {
	contents []Content
	from     map[string]Source
}

func (j *joined) Contents() []Content { return slices.Clone(j.contents) }

func (j *joined) Open(sha256 string) (io.ReadCloser, error) {
	s, ok := j.from[sha256]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return s.Open(sha256)
}

func sortContents(all []Content) {
	slices.SortFunc(all, func(a, b Content) int { return compareDigests(a.Digest, b.Digest) })
}
