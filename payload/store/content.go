package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
)

// errChanged is the error for contents that differ from the list.
var errChanged = errors.New("is not what " + ListFile + " lists")

// Window is the size of the zstd window in bytes. A reader needs as much memory.
const Window = 8 << 20

// Content is a stream with a known digest. It ends with an error if the digest differs, so nothing of it may be used
// before io.EOF.
type Content struct {
	Blob
	io.Reader
	close func() error
}

// Close closes the stream.
func (c *Content) Close() error { return c.close() }

// Stored returns the compressed executable, as it is in the folder.
func (s *Store) Stored(name string) (*Content, error) {
	e, err := s.find(name)
	if err != nil {
		return nil, err
	}
	file, err := s.open(e)
	if err != nil {
		return nil, err
	}
	return &Content{Blob: e.Stored, Reader: checked(file, e.Stored), close: file.Close}, nil
}

// Raw returns the uncompressed executable.
func (s *Store) Raw(name string) (*Content, error) {
	e, err := s.find(name)
	if err != nil {
		return nil, err
	}
	file, err := s.open(e)
	if err != nil {
		return nil, err
	}
	c, err := decompress(file, e.Raw)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	inner := c.close
	c.close = func() error { return errors.Join(inner(), file.Close()) }
	return c, nil
}

func (s *Store) open(e Entry) (*os.File, error) {
	file, err := os.Open(filepath.Join(s.dir, e.File()))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", e.Name, err)
	}
	return file, nil
}

// decompress reads zstd with bounded memory. It stops at the listed size.
func decompress(r io.Reader, b Blob) (*Content, error) {
	dec, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(Window))
	if err != nil {
		return nil, fmt.Errorf("reading zstd: %w", err)
	}
	return &Content{Blob: b, Reader: checked(dec, b), close: func() error { dec.Close(); return nil }}, nil
}

// checker counts and digests the bytes that are read.
type checker struct {
	from io.Reader
	want Blob
	hash hash.Hash
	size int64
}

func checked(r io.Reader, want Blob) *checker {
	return &checker{from: r, want: want, hash: sha256.New()}
}

// Read implements io.Reader. It returns errChanged instead of io.EOF if the content is not the wanted one.
func (c *checker) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	_, _ = c.hash.Write(p[:n]) // hash.Hash documents that Write never returns an error
	c.size += int64(n)
	switch {
	case c.size > c.want.Size:
		return 0, fmt.Errorf("%w: it has more than %d bytes", errChanged, c.want.Size)
	case errors.Is(err, io.EOF):
		return n, c.end()
	case err != nil && !errors.Is(err, errChanged):
		return n, fmt.Errorf("%w: %w", errChanged, err)
	}
	return n, err
}

func (c *checker) end() error {
	if c.size < c.want.Size {
		return fmt.Errorf("%w: it ends after %d of %d bytes", errChanged, c.size, c.want.Size)
	}
	if got := bundle.Digest("sha256:" + hex.EncodeToString(c.hash.Sum(nil))); got != c.want.Digest {
		return fmt.Errorf("%w: its digest is %s, not %s", errChanged, got.Short(), c.want.Digest.Short())
	}
	return io.EOF
}
