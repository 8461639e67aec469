package fetch

import (
	"archive/tar"
	"bufio"
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

// fetchLayer fetches a layer into a file, which may have the beginning of it already.
func (s Source) fetchLayer(ctx context.Context, l descriptor, file string, report func(int64)) error {
	var failed error
	for range attempts {
		size, err := s.continueLayer(ctx, l, file, report)
		if err == nil && size < l.Size {
			err = fmt.Errorf("it ended after %d of %d bytes", size, l.Size)
		}
		if err == nil {
			err = verifyLayer(l, file)
		}
		if err == nil || errors.As(err, new(*StatusError)) || ctx.Err() != nil {
			return err
		}
		failed = err
	}
	return fmt.Errorf("layer %.12s: %w", l.Digest.Encoded(), failed)
}

// continueLayer fetches what the file lacks, and returns its size then.
func (s Source) continueLayer(ctx context.Context, l descriptor, file string, report func(int64)) (size int64, err error) {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	info, err := out.Stat()
	if err != nil || info.Size() == l.Size {
		return l.Size, err
	}
	begin, header := info.Size(), http.Header{}
	if begin > l.Size {
		begin = 0
	}
	if begin > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", begin))
	}
	response, err := s.getContent(ctx, "blobs/"+l.Digest.String(), header)
	if err != nil {
		return begin, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusPartialContent || begin == 0 {
		begin = 0 // the registry sends all of it
		if err := out.Truncate(0); err != nil {
			return 0, err
		}
	}
	n, err := io.Copy(out, &counter{io.LimitReader(response.Body, l.Size-begin), begin, report})
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

// verifyLayer removes a file that is not the layer, so that it is fetched again.
func verifyLayer(l descriptor, file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, in)
	if err = errors.Join(err, in.Close()); err != nil {
		return err
	}
	if got := digest.NewDigest(digest.SHA256, hash); got != l.Digest {
		return errors.Join(errors.New("the registry sent other bytes than the digest names"), os.Remove(file))
	}
	return nil
}

// unpackLayer writes the files of Folder that a layer has into a folder.
func unpackLayer(l descriptor, file, folder string) error {
	in, err := os.Open(file)
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
		if err := writeFile(filepath.Join(folder, base), all); err != nil {
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
