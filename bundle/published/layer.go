package published

import (
	"bytes"
	"fmt"
	"strings"

	"wmco/bundle"
	"wmco/bundle/archive"
)

const (
	// MaxInline is the size of the largest packed layer that is stored on the Node itself, in bytes: every update of a
	// Node goes to everybody who watches Nodes.
	MaxInline = 4 << 10
	// PartSize is the size of one part in a Secret, in bytes. etcd accepts requests of 1.5 MiB, and base64 makes a part
	// a third larger.
	PartSize = 900 << 10
	maxParts = (archive.MaxLayer-1)/PartSize + 1
)

// labelDigits is how many hex digits of a digest a name or a label has: 160 bits.
const labelDigits = 40

// Packed is a layer, ready to be published.
type Packed struct {
	Layer
	// Secrets are the parts, in their order; none for an inline layer.
	Secrets []Part
}

// Part is the content of one Secret.
type Part struct {
	Name string
	Data []byte
}

// Packer prepares layers one after another, with the memory of one compressor. The zero value is ready.
type Packer struct{ archive archive.Packer }

// Pack is a Packer for one layer.
func Pack(l bundle.Layer) (Packed, error) { return new(Packer).Pack(l) }

// Pack prepares a layer. Where the layer is small and holds no secret, it is inline: whoever reads Nodes can read it.
func (x *Packer) Pack(l bundle.Layer) (Packed, error) {
	digest, err := l.Digest()
	if err != nil {
		return Packed{}, err
	}
	data, err := x.archive.Layer(l)
	if err != nil {
		return Packed{}, err
	}
	p := Packed{Layer: Layer{Digest: digest}}
	if len(data) <= MaxInline && l.Kind == bundle.LayerNode {
		p.Inline = data
		return p, nil
	}
	p.Parts = (len(data)-1)/PartSize + 1
	for i, name := range p.Names() {
		part := data[i*PartSize : min((i+1)*PartSize, len(data))]
		p.Secrets = append(p.Secrets, Part{Name: name, Data: part})
	}
	return p, nil
}

// Names returns the names of the Secrets, in the order of the parts. A name depends on nothing but the layer, so that a
// published layer never changes.
func (l Layer) Names() []string {
	var names []string
	for i := range l.Parts {
		names = append(names, fmt.Sprintf("windows-layer-%s-%dof%d", l.Label(), i+1, l.Parts))
	}
	return names
}

// Label is the value of LayerLabel.
func (l Layer) Label() string { return Label(l.Digest) }

// Label is the value of LayerLabel for a layer with this digest.
func Label(layer bundle.Digest) string {
	_, digits, _ := strings.Cut(string(layer), ":")
	return digits[:min(labelDigits, len(digits))]
}

// Open returns the layer with its contents. Parts are those of its Secrets, in the order of Names; none for an inline
// layer. A layer that does not have its digest is archive.ErrMalformed.
func (l Layer) Open(parts [][]byte) (bundle.Layer, error) {
	data := l.Inline
	if l.Parts > 0 {
		if len(parts) != l.Parts {
			return bundle.Layer{}, fmt.Errorf("%w: layer %s has %d parts, not %d", ErrInvalid, l.Digest.Short(), len(parts), l.Parts)
		}
		data = bytes.Join(parts, nil)
	}
	opened, err := archive.UnpackLayer(data, l.Digest)
	if err != nil {
		return bundle.Layer{}, fmt.Errorf("opening layer %s: %w", l.Digest.Short(), err)
	}
	return opened, nil
}
