package records

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"wmco/bundle/archive"
)

// contextReader stops reading when the context ends.
type contextReader struct {
	ctx context.Context //nolint:containedctx // io.Reader has no other way to carry it
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// partReader reads parts one after another, and opens each when the one before has ended.
type partReader struct {
	ctx   context.Context //nolint:containedctx // io.Reader has no other way to carry it
	store *Store
	parts []archive.Part
	open  io.ReadCloser
}

func (r *partReader) Read(p []byte) (int, error) {
	for {
		if r.open == nil {
			if len(r.parts) == 0 {
				return 0, io.EOF
			}
			f, err := r.store.host.Open(r.ctx, partPath(r.parts[0]))
			if err != nil {
				return 0, HideContentName(err)
			}
			r.open, r.parts = f, r.parts[1:]
		}
		n, err := r.open.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, HideContentName(err)
		}
		err = HideContentName(r.Close())
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// checkedReader reads a file and reports at its end whether it is the one that was kept.
type checkedReader struct {
	io.ReadCloser
	hash hash.Hash
	want string
}

func (r *checkedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.hash.Write(p[:n])
	if errors.Is(err, io.EOF) && hex.EncodeToString(r.hash.Sum(nil)) != r.want {
		return n, fmt.Errorf("reading a kept file: %w", ErrDamaged)
	}
	return n, HideContentName(err)
}

// countingReader counts the bytes that are read.
type countingReader struct {
	io.Reader
	n int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n += int64(n)
	return n, err
}
