package archive

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
)

// The largest manifest and list of contents that a Reader accepts, in bytes. A thousand files make a manifest of 0.3
// MB.
const (
	maxManifest = bundle.MaxManifest
	maxIndex    = 16 << 20
)

// The first bytes of what a Reader accepts: a manifest, and zstd (RFC 8878, 3.1.1, the magic number).
const (
	beginsManifest = '{'
	beginsZstd     = 0x28
)

// tarBlock is the unit to which sizes in a tar are rounded up; two empty blocks end it (POSIX pax, ustar Interchange
// Format).
const tarBlock = 512

// Reader reads a stream. Nothing of it may be used before Next has returned io.EOF.
type Reader struct {
	Manifest bundle.Manifest

	contents []Content
	in       *meter
	zip      *unzipped
	tar      *tar.Reader
	checker  *Checker
	// end is the offset in the tar at which the last member ends, with its padding.
	end int64
	// over is the error that it ended with.
	over error
}

// NewReader reads the manifest and the list of contents. It also accepts a MANIFEST.json without contents.
//
// A stream that ends early is io.ErrUnexpectedEOF, an error of r is returned as it is, a manifest of a newer program is
// a *bundle.SchemaError. Anything else was not made by a Writer, and most of it is ErrMalformed.
func NewReader(from io.Reader) (*Reader, error) {
	in := bufio.NewReader(from)
	first, err := in.Peek(1)
	if err != nil {
		return nil, fmt.Errorf("reading the archive: %w", notEnd(err))
	}
	switch first[0] {
	case beginsManifest:
		return readManifest(in)
	case beginsZstd:
		return readArchive(in)
	default:
		return nil, fmt.Errorf("%w: neither an archive nor a manifest", ErrMalformed)
	}
}

// readManifest reads a manifest without an archive around it.
func readManifest(in io.Reader) (*Reader, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	if len(data) > maxManifest {
		return nil, fmt.Errorf("%w: the manifest has more than %d bytes", ErrMalformed, maxManifest)
	}
	m, err := bundle.DecodeManifest(data)
	return &Reader{Manifest: m, over: io.EOF}, err
}

func readArchive(in io.Reader) (*Reader, error) {
	zip := newUnzipped(in)
	r := &Reader{in: &meter{from: zip}, zip: zip}
	r.tar = tar.NewReader(r.in)
	manifest, err := r.readDocument(manifestMember, maxManifest)
	if err != nil {
		return nil, err
	}
	if r.Manifest, err = bundle.DecodeManifest(manifest); err != nil {
		return nil, err
	}
	index, err := r.readDocument(indexMember, maxIndex)
	if err != nil {
		return nil, err
	}
	if r.contents, err = decodeIndex(index); err != nil {
		return nil, err
	}
	r.checker, err = NewChecker(r.Manifest, r.contents)
	return r, err
}

// readDocument reads a whole member. Memory grows with the bytes that arrive, not with the size that the member claims.
func (r *Reader) readDocument(name string, limit int64) ([]byte, error) {
	h, err := r.nextMember()
	if atEnd(err) {
		err = fmt.Errorf("%w: it ends before %s", ErrMalformed, name)
	}
	if err != nil {
		return nil, err
	}
	if h.Name != name {
		return nil, fmt.Errorf("%w: found %s instead of %s", ErrMalformed, shownName(h.Name), name)
	}
	if h.Size > limit {
		return nil, fmt.Errorf("%w: %s has %d bytes, at most %d are allowed", ErrMalformed, name, h.Size, limit)
	}
	data, err := io.ReadAll(r.tar)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

// Contents returns those of the manifest that the sender has, in the order of their digests, whether their parts follow
// or not. A bare manifest has none.
func (r *Reader) Contents() []Content { return r.contents }

// Next returns the next part and its bytes, which are valid until Next is called again and need not be read. The part
// is one of a content in the list. At the end of the stream, and only there, it returns io.EOF; the errors are those of
// NewReader.
func (r *Reader) Next() (Part, io.Reader, error) {
	if r.over != nil {
		return Part{}, nil, r.over
	}
	p, err := r.readPart()
	if err != nil {
		r.over = err
		return Part{}, nil, err
	}
	return p, struct{ io.Reader }{r.tar}, nil
}

func (r *Reader) readPart() (Part, error) {
	h, err := r.nextMember()
	if err != nil {
		return Part{}, err
	}
	name, ok := strings.CutPrefix(h.Name, partFolder)
	if !ok {
		return Part{}, fmt.Errorf("%w: %s is no part", ErrMalformed, shownName(h.Name))
	}
	p, err := ParsePart(name)
	if err != nil {
		return Part{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	c, err := r.checker.Part(p)
	if err != nil {
		return Part{}, err
	}
	if want := c.PartSize(p.Index); h.Size != want {
		return Part{}, fmt.Errorf("%w: part %d of content %s has %d bytes, not %d", ErrMalformed, p.Index, c.Digest, h.Size, want)
	}
	return p, nil
}

// nextMember returns the next member. Only regular files in the plain format are accepted: no links, devices or
// folders, and no extensions, which would change the meaning of a header.
func (r *Reader) nextMember() (*tar.Header, error) {
	h, err := r.tar.Next()
	if err != nil {
		return nil, r.checkEnd(err)
	}
	switch {
	case h.Typeflag != tar.TypeReg:
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrMalformed, shownName(h.Name))
	case h.Format != tar.FormatUSTAR || r.in.n != r.end+tarBlock:
		return nil, fmt.Errorf("%w: %s has an extended header", ErrMalformed, shownName(h.Name))
	}
	r.end = r.in.n + (h.Size+tarBlock-1)/tarBlock*tarBlock
	return h, nil
}

// checkEnd returns the end of the stream, which has to come after the two blocks that end a tar, or an error for what
// is not a tar.
func (r *Reader) checkEnd(err error) error {
	switch {
	case r.in.broken != nil:
		return fmt.Errorf("reading the archive: %w", r.in.broken)
	case !atEnd(err) && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	case r.in.n != r.end+2*tarBlock:
		return fmt.Errorf("reading the archive: %w", io.ErrUnexpectedEOF)
	}
	// The checksum of the stream follows its last byte.
	switch n, err := r.in.Read(make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("%w: something follows the last member", ErrMalformed)
	case !atEnd(err):
		return fmt.Errorf("reading the archive: %w", err)
	}
	return io.EOF
}

// unzipped reads a zstd stream. Its errors are those of the reader below, io.ErrUnexpectedEOF and ErrMalformed.
type unzipped struct {
	below *meter
	zip   *zstd.Decoder
}

func newUnzipped(from io.Reader) *unzipped {
	m := &meter{from: from}
	return &unzipped{below: m, zip: newDecoder(m)}
}

func (u *unzipped) Read(p []byte) (int, error) {
	n, err := u.zip.Read(p)
	switch {
	case err == nil || atEnd(err):
		return n, err
	case u.below.broken != nil:
		return n, u.below.broken
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, io.ErrUnexpectedEOF
	default:
		return n, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
}
