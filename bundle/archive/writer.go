package archive

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
)

// The members of a stream, in their order. Parts are below partFolder.
const (
	manifestMember = "MANIFEST.json"
	indexMember    = "contents.json"
	partFolder     = "contents/"
)

// Writer writes a stream. The same manifest, contents and parts give the same bytes.
type Writer struct {
	zip     *zstd.Encoder
	tar     *tar.Writer
	checker *Checker
}

// NewWriter begins a stream with the manifest and the list of contents. The list holds contents of the manifest and
// nothing else, in the order of their digests, whether their parts follow or not.
func NewWriter(to io.Writer, m bundle.Manifest, contents []Content) (*Writer, error) {
	checker, err := NewChecker(m, contents)
	if err != nil {
		return nil, err
	}
	manifest, err := m.Encode()
	if err != nil {
		return nil, err
	}
	index, err := encodeIndex(contents)
	if err != nil {
		return nil, err
	}
	zip := newStreamEncoder(to)
	w := &Writer{zip: zip, tar: tar.NewWriter(zip), checker: checker}
	if err := w.writeMember(manifestMember, int64(len(manifest)), bytes.NewReader(manifest)); err != nil {
		return nil, err
	}
	return w, w.writeMember(indexMember, int64(len(index)), bytes.NewReader(index))
}

// WritePart adds a part of a content in the list and reads as many bytes of its stored form as the part has. Parts must
// be added in the order of their names.
func (w *Writer) WritePart(p Part, stored io.Reader) error {
	c, err := w.checker.Part(p)
	if err != nil {
		return err
	}
	if err := w.writeMember(partFolder+p.Name(), c.PartSize(p.Index), stored); err != nil {
		return fmt.Errorf("content %s: %w", c.Digest, err)
	}
	return nil
}

// writeMember writes size bytes of content. Its errors do not name the part, whose name is the hash of a possible
// secret.
func (w *Writer) writeMember(name string, size int64, content io.Reader) error {
	h := tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, Format: tar.FormatUSTAR}
	if err := w.tar.WriteHeader(&h); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	n, err := io.Copy(w.tar, io.LimitReader(content, size))
	if err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	if n < size {
		return fmt.Errorf("writing the archive: the stored form ends %d bytes early", size-n)
	}
	return nil
}

// Close ends the stream and does not close the writer below. A stream without it is incomplete.
func (w *Writer) Close() error {
	if err := w.tar.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	if err := w.zip.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	return nil
}
