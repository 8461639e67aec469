package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"wmco/bundle"
)

// Limits of a packed layer, in bytes. A layer of a cluster with hundreds of registries has about 1 MB.
const (
	// MaxLayer is the largest packed layer.
	MaxLayer = 16 << 20
	// maxUnpacked is the largest layer with its contents.
	maxUnpacked = 64 << 20
	// memberRoom is what tar adds to a member at most: its header, and the rest of its last block. The end of an
	// archive has as much.
	memberRoom = 1 << 10
)

// ErrTooLarge means that a layer is larger than what can be published.
var ErrTooLarge = errors.New("the layer is too large")

// layerMember is the first member of a packed layer. The others are contents, each named by its digest.
const layerMember = "layer.json"

// Packer packs layers one after another, with the memory of one compressor. The zero value is ready.
type Packer struct{ zip *zstd.Encoder }

// PackLayer is a Packer for one layer.
func PackLayer(l bundle.Layer) ([]byte, error) { return new(Packer).Layer(l) }

// Layer returns a layer with its contents for storing it as one text:
//
//	zstd( tar( layer.json, <digest of a content>... ) )
//
// Executables are left out, because a payload has them. The same layer gives the same bytes. A preview is ErrMasked.
// What UnpackLayer would refuse for its size is ErrTooLarge.
func (p *Packer) Layer(l bundle.Layer) ([]byte, error) {
	index, err := l.Encode()
	if err != nil {
		return nil, fmt.Errorf("packing a layer: %w", err)
	}
	contents, err := layerContents(l)
	if err != nil {
		return nil, fmt.Errorf("packing a layer: %w", err)
	}
	size := len(index)
	for _, n := range contents {
		size += len(n.content.Data)
	}
	if size > maxUnpacked-memberRoom*(len(contents)+2) {
		return nil, fmt.Errorf("%w: its files have %d bytes together, at most %d are allowed", ErrTooLarge, size, maxUnpacked)
	}
	var out bytes.Buffer
	if p.zip == nil {
		p.zip = newStoredEncoder(nil)
	}
	p.zip.Reset(&out)
	if err := writeLayer(tar.NewWriter(p.zip), index, contents); err != nil {
		return nil, fmt.Errorf("packing a layer: %w", err)
	}
	if err := p.zip.Close(); err != nil {
		return nil, fmt.Errorf("packing a layer: %w", err)
	}
	if out.Len() > MaxLayer {
		return nil, fmt.Errorf("%w: it has %d bytes when it is compressed, at most %d are allowed", ErrTooLarge, out.Len(), MaxLayer)
	}
	return bytes.Clone(out.Bytes()), nil // kept for each node: without the room in which it was made
}

// inLayer returns what a layer names that is not an executable, in the order of the digests.
func inLayer(l bundle.Layer) []named {
	all := slices.DeleteFunc(namedIn(l), func(n named) bool { return n.content == nil })
	slices.SortStableFunc(all, func(a, b named) int { return compareDigests(a.digest, b.digest) })
	return all
}

// layerContents returns the contents of a layer, each once, in the order of their digests.
func layerContents(l bundle.Layer) ([]named, error) {
	all := inLayer(l)
	for _, n := range all {
		switch {
		case n.digest == bundle.Masked:
			return nil, fmt.Errorf("%s: %w", n.entry, ErrMasked)
		case n.content.Data == nil:
			return nil, fmt.Errorf("%s has no content", n.entry)
		}
	}
	return slices.CompactFunc(all, func(a, b named) bool { return a.digest == b.digest }), nil
}

func writeLayer(out *tar.Writer, index []byte, contents []named) error {
	if err := writeMember(out, layerMember, index); err != nil {
		return err
	}
	for _, n := range contents {
		if err := writeMember(out, string(n.digest), n.content.Data); err != nil {
			return err
		}
	}
	return out.Close()
}

func writeMember(out *tar.Writer, name string, data []byte) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(data)), Format: tar.FormatUSTAR}); err != nil {
		return err
	}
	_, err := out.Write(data)
	return err
}

// UnpackLayer returns a packed layer with its contents. It trusts nothing: what does not have the digest, has more or
// fewer contents than the layer names, or is larger than the limits is ErrMalformed; a layer of a newer program is a
// *bundle.SchemaError.
func UnpackLayer(data []byte, want bundle.Digest) (bundle.Layer, error) {
	if len(data) > MaxLayer {
		return bundle.Layer{}, fmt.Errorf("%w: the layer has %d bytes, at most %d are allowed", ErrMalformed, len(data), MaxLayer)
	}
	raw, err := decompressLayer(data)
	if err != nil {
		return bundle.Layer{}, err
	}
	in := tar.NewReader(bytes.NewReader(raw))
	index, err := readMember(in, layerMember)
	if err != nil {
		return bundle.Layer{}, err
	}
	if got := bundle.Of(index); got != want {
		return bundle.Layer{}, fmt.Errorf("%w: the layer is %s, not %s", ErrMalformed, got.Short(), want.Short())
	}
	l, err := bundle.DecodeLayer(index)
	if err != nil {
		return bundle.Layer{}, err
	}
	return l, attachContents(l, in)
}

// decompressLayer returns what a packed layer holds, within the limit.
func decompressLayer(data []byte) ([]byte, error) {
	in := &meter{from: bytes.NewReader(data)}
	zip := newDecoder(in)
	defer zip.Close()
	raw, err := io.ReadAll(io.LimitReader(zip, maxUnpacked+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: unpacking the layer: %v", ErrMalformed, err) //nolint:errorlint // the error of the library is no contract
	case len(raw) > maxUnpacked:
		return nil, fmt.Errorf("%w: the layer unpacks to more than %d bytes", ErrMalformed, maxUnpacked)
	}
	return raw, nil
}

func readMember(in *tar.Reader, name string) ([]byte, error) {
	h, err := in.Next()
	if err != nil {
		return nil, fmt.Errorf("%w: looking for %s: %v", ErrMalformed, name, err) //nolint:errorlint // the error of the library is no contract
	}
	if h.Name != name || h.Typeflag != tar.TypeReg {
		return nil, fmt.Errorf("%w: found %.100q instead of %s", ErrMalformed, h.Name, name)
	}
	data, err := io.ReadAll(in) // all of it is in memory already
	if err != nil {
		return nil, fmt.Errorf("%w: reading %s: %v", ErrMalformed, name, err) //nolint:errorlint // the error of the library is no contract
	}
	return data, nil
}

// attachContents reads the contents of a layer, in the order in which PackLayer wrote them.
func attachContents(l bundle.Layer, in *tar.Reader) error {
	all := inLayer(l)
	var last bundle.Digest
	var data []byte
	for _, n := range all {
		if n.digest != last {
			var err error
			if data, err = readMember(in, string(n.digest)); err != nil {
				return err
			}
			last = n.digest
		}
		if err := n.checkDigest(data); err != nil {
			return err
		}
		n.content.Data = data
	}
	if h, err := in.Next(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows the last content: %v", ErrMalformed, h)
	}
	return nil
}

// checkDigest checks a content against the entry that names it. That of a secret has a keyed digest, which only the
// operator can check.
func (n named) checkDigest(data []byte) error {
	if n.size != 0 && n.size != int64(len(data)) {
		return fmt.Errorf("%w: %s has %d bytes, not %d", ErrMalformed, n.entry, len(data), n.size)
	}
	if !n.digest.Keyed() && bundle.Of(data) != n.digest {
		return fmt.Errorf("%w: %s does not have its digest", ErrMalformed, n.entry)
	}
	return nil
}
