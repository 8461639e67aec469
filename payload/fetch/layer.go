package fetch

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/opencontainers/go-digest"

	"wmco/payload/store"
)

// maxUnpacked bounds what a layer unpacks to, in bytes.
const maxUnpacked = 2 * maxLayer

// attempts is how often a layer that breaks off is continued.
const attempts = 5

// partial is what there is of a layer.
type partial interface {
	io.Writer
	countBytes() (int64, error)
	// open reads it from its beginning.
	openBytes() (io.ReadCloser, error)
	// discard drops all of it.
	discardBytes() error
}

// onDisk is a partial in a file, which need not exist.
type onDisk string

func (f onDisk) countBytes() (int64, error) {
	info, err := os.Stat(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Write implements io.Writer.
func (f onDisk) Write(p []byte) (int, error) {
	out, err := os.OpenFile(string(f), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := out.Write(p)
	return n, errors.Join(err, out.Close())
}

func (f onDisk) openBytes() (io.ReadCloser, error) { return os.Open(string(f)) }

func (f onDisk) discardBytes() error {
	if err := os.Remove(string(f)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// inMemory is a partial in memory.
type inMemory struct{ data []byte }

func (m *inMemory) countBytes() (int64, error) { return int64(len(m.data)), nil }

// Write implements io.Writer.
func (m *inMemory) Write(p []byte) (int, error) {
	m.data = append(m.data, p...)
	return len(p), nil
}

func (m *inMemory) openBytes() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(m.data)), nil
}

func (m *inMemory) discardBytes() error {
	m.data = m.data[:0]
	return nil
}

// fetchLayer fetches what there is not yet of a layer.
func (r repository) fetchLayer(ctx context.Context, l descriptor, into partial, report func(int64)) error {
	var failed error
	for range attempts {
		size, err := r.continueLayer(ctx, l, into, report)
		if err == nil && size < l.Size {
			err = fmt.Errorf("it ended after %d of %d bytes", size, l.Size)
		}
		if err == nil {
			err = verifyLayer(l, into)
		}
		if err == nil || errors.As(err, new(*StatusError)) || ctx.Err() != nil {
			return err
		}
		failed = err
	}
	return fmt.Errorf("layer %.12s: %w", l.Digest.Encoded(), failed)
}

// continueLayer fetches the rest of a layer, and returns how much there is of it then.
func (r repository) continueLayer(ctx context.Context, l descriptor, into partial, report func(int64)) (int64, error) {
	begin, err := into.countBytes()
	if err != nil || begin == l.Size {
		return l.Size, err
	}
	header := http.Header{}
	if begin > 0 && begin < l.Size {
		header.Set("Range", fmt.Sprintf("bytes=%d-", begin))
	}
	response, err := r.getContent(ctx, "blobs/"+l.Digest.String(), header)
	if err != nil {
		return begin, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusPartialContent || len(header) == 0 {
		begin = 0 // the registry sends all of it
		if err := into.discardBytes(); err != nil {
			return 0, err
		}
	}
	n, err := io.Copy(into, &counter{slowed{ctx, io.LimitReader(response.Body, l.Size-begin), r.limit}, begin, report})
	return begin + n, err
}

// counter reports how much was read.
type counter struct {
	from   io.Reader
	have   int64
	report func(int64)
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.have += int64(n)
	c.report(c.have)
	return n, err
}

// verifyLayer discards other bytes than those of the layer, so that it is fetched again.
func verifyLayer(l descriptor, have partial) error {
	in, err := have.openBytes()
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, in)
	if err = errors.Join(err, in.Close()); err != nil {
		return err
	}
	if got := digest.NewDigest(digest.SHA256, hash); got != l.Digest {
		return errors.Join(errors.New("the registry sent other bytes than the digest names"), have.discardBytes())
	}
	return nil
}

// unpackLayer calls use for the files of Folder that a layer has.
func unpackLayer(l descriptor, have partial, use func(base string, content io.Reader) error) error {
	in, err := have.openBytes()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	plain, err := decompress(bufio.NewReader(in))
	if err != nil {
		return fmt.Errorf("layer %.12s: %w", l.Digest.Encoded(), err)
	}
	defer plain.Close() //nolint:errcheck // what was read is verified
	for all := tar.NewReader(io.LimitReader(plain, maxUnpacked)); ; {
		h, err := all.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("layer %.12s: %w", l.Digest.Encoded(), err)
		}
		dir, base := path.Split(strings.TrimPrefix(path.Clean(h.Name), "/"))
		if dir != Folder+"/" || h.Typeflag != tar.TypeReg || !isPayloadFile(base) {
			continue
		}
		if err := use(base, all); err != nil {
			return err
		}
	}
}

// isPayloadFile reports whether a folder of executables may have a file of this name. On Windows a name can lead elsewhere (filepath.IsLocal).
func isPayloadFile(base string) bool {
	return base == store.ListFile || strings.HasSuffix(base, store.FileOf("")) && filepath.IsLocal(base)
}

func writeFile(file string, from io.Reader) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	return errors.Join(err, out.Close())
}

// decompress reads gzip, zstd or a plain archive, whatever the media type says.
func decompress(in *bufio.Reader) (io.ReadCloser, error) {
	magic, err := in.Peek(4)
	switch {
	case err != nil:
		return nil, err
	case magic[0] == 0x1f && magic[1] == 0x8b: // RFC 1952
		return gzip.NewReader(in)
	case string(magic) == "\x28\xb5\x2f\xfd": // RFC 8878
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(store.Window))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return io.NopCloser(in), nil
}
