package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
)

// CorruptError means that stored bytes are not those of the content. All its parts have to be sent again.
type CorruptError struct {
	Content bundle.Digest
	Reason  string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("content %s is corrupt: %s", e.Content, e.Reason)
}

// Decode returns the raw bytes of a content, from all its parts in their order. It returns at most c.Size bytes and
// takes about 10 MB of memory, however large the content is. Everything is checked before io.EOF. Stored bytes that are
// not those of the content are a *CorruptError, and then what was read before must not be used. An error of the stored
// reader is returned as it is. Close does not close stored.
func Decode(stored io.Reader, c Content) io.ReadCloser {
	m := &meter{from: io.LimitReader(stored, c.Stored+1)}
	return &decoder{content: c, stored: m, zip: newDecoder(m), sum: sha256.New()}
}

type decoder struct {
	content Content
	stored  *meter
	zip     *zstd.Decoder
	sum     hash.Hash
	n       int64
	err     error
}

func (d *decoder) Read(p []byte) (int, error) {
	if d.err != nil || len(p) == 0 {
		return 0, d.err
	}
	left := d.content.Size - d.n
	if left <= 0 {
		d.err = d.checkEnd()
		return 0, d.err
	}
	n, err := d.zip.Read(p[:min(int64(len(p)), left)])
	_, _ = d.sum.Write(p[:n]) // hash.Hash documents that Write never returns an error
	d.n += int64(n)
	if err != nil && d.n < d.content.Size {
		d.err = d.explainError(err)
	}
	return n, d.err
}

// checkEnd checks what can only be checked at the end.
func (d *decoder) checkEnd() error {
	if n, err := d.zip.Read(make([]byte, 1)); n > 0 {
		return d.corruptError("it has more than %d bytes", d.content.Size)
	} else if !atEnd(err) {
		return d.explainError(err)
	}
	if d.stored.n != d.content.Stored {
		return d.corruptError("it is stored in %d bytes, not %d", d.stored.n, d.content.Stored)
	}
	if hex.EncodeToString(d.sum.Sum(nil)) != d.content.SHA256 {
		return d.corruptError("it has another SHA-256")
	}
	return io.EOF
}

// explainError returns the error of the stored reader, or a *CorruptError for bytes that are not zstd or too few.
func (d *decoder) explainError(err error) error {
	if d.stored.broken != nil {
		return fmt.Errorf("reading stored content %s: %w", d.content.Digest, d.stored.broken)
	}
	if atEnd(err) {
		return d.corruptError("it has %d bytes, not %d", d.n, d.content.Size)
	}
	return d.corruptError("after %d bytes: %v", d.n, err)
}

func (d *decoder) corruptError(format string, args ...any) error {
	return &CorruptError{Content: d.content.Digest, Reason: fmt.Sprintf(format, args...)}
}

func (d *decoder) Close() error {
	d.zip.Close()
	d.err = fs.ErrClosed
	return nil
}
