package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// SchemaError means that something was written by a newer program than this one.
type SchemaError struct {
	// What is what was read, such as "manifest".
	What       string
	Have, Want int
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("%s has schema %d, this program reads up to %d: use a newer wmco", e.What, e.Have, e.Want)
}

// Manifest is the sorted index of a bundle: every entry and digest, no contents.
type Manifest struct {
	Schema int     `json:"schema"`
	Digest Digest  `json:"digest"`
	Layers []Index `json:"layers"`
}

// Index is one layer with its digest.
type Index struct {
	Digest Digest `json:"digest"`
	Layer  Layer  `json:"layer"`
}

// NodeName returns the name of the Node that the bundle is for; empty if it names none.
func (m Manifest) NodeName() string {
	for _, l := range m.Layers {
		if l.Layer.NodeName != "" {
			return l.Layer.NodeName
		}
	}
	return ""
}

// HasStage reports whether a layer is of a stage.
func (m Manifest) HasStage(stage Stage) bool {
	return slices.ContainsFunc(m.Layers, func(l Index) bool { return l.Layer.Stage == stage })
}

// PayloadDigests returns the digests of the payload.
func (m Manifest) PayloadDigests() map[Digest]bool {
	all := map[Digest]bool{}
	for _, l := range m.Layers {
		for _, p := range l.Layer.Payload {
			all[p.Digest] = true
		}
	}
	return all
}

// Encode returns the canonical encoding of the layer: the bytes that its digest is of.
func (l *Layer) Encode() ([]byte, error) {
	l.Normalize()
	if err := l.Check(); err != nil {
		return nil, err
	}
	return marshalJSON(l)
}

// Digest returns the digest of the layer's canonical encoding. Entries with secrets are in it by their keyed digests.
func (l *Layer) Digest() (Digest, error) {
	data, err := l.Encode()
	if err != nil {
		return "", err
	}
	return Of(data), nil
}

// Digest returns the digest of the bundle, over the digests of its layers.
func (b Bundle) Digest() (Digest, error) {
	m, err := b.Manifest()
	return m.Digest, err
}

// Manifest returns the index of the bundle.
func (b Bundle) Manifest() (Manifest, error) {
	if err := b.Check(); err != nil {
		return Manifest{}, err
	}
	m := Manifest{Schema: Schema}
	for _, l := range b.Layers() {
		d, err := l.Digest()
		if err != nil {
			return Manifest{}, err
		}
		m.Layers = append(m.Layers, Index{Digest: d, Layer: l})
	}
	d, err := DigestLayers(m.Layers[0].Digest, m.Layers[1].Digest)
	m.Digest = d
	return m, err
}

// DigestLayers returns the digest of the bundle with these layers.
func DigestLayers(cluster, node Digest) (Digest, error) {
	data, err := marshalJSON(struct {
		Schema int      `json:"schema"`
		Layers []Digest `json:"layers"`
	}{Schema, []Digest{cluster, node}})
	if err != nil {
		return "", err
	}
	return Of(data), nil
}

// DecodeLayer reads what Encode wrote. Unknown fields, entries out of order and anything after the value are refused;
// a newer schema is a *SchemaError.
func DecodeLayer(data []byte) (Layer, error) {
	var l Layer
	if err := decodeStrict(data, "layer", &l); err != nil {
		return Layer{}, err
	}
	return l, l.checkDecoded()
}

func (l *Layer) checkDecoded() error {
	if l.Kind != LayerCluster && l.Kind != LayerNode {
		return fmt.Errorf("%w: unknown layer %q", ErrInconsistent, l.Kind)
	}
	if l.Stage != StageJoin && l.Stage != StageJoined {
		return fmt.Errorf("%w: unknown stage %q", ErrInconsistent, l.Stage)
	}
	return l.Check()
}

// DecodeManifest reads a manifest and checks it against the digests in it.
func DecodeManifest(data []byte) (Manifest, error) {
	var m Manifest
	if err := decodeStrict(data, "manifest", &m); err != nil {
		return Manifest{}, err
	}
	if err := m.Check(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// Check returns an error for the first thing that makes a manifest invalid: its layers, or a digest that does not
// match.
func (m Manifest) Check() error {
	if len(m.Layers) != 2 || m.Layers[0].Layer.Kind != LayerCluster || m.Layers[1].Layer.Kind != LayerNode {
		return fmt.Errorf("%w: a manifest has a cluster layer and a node layer, in this order", ErrInconsistent)
	}
	b := Bundle{Cluster: m.Layers[0].Layer, Node: m.Layers[1].Layer}
	for _, l := range b.Layers() {
		if err := l.checkDecoded(); err != nil {
			return err
		}
	}
	again, err := b.Manifest()
	if err != nil {
		return err
	}
	for i, l := range again.Layers {
		if l.Digest != m.Layers[i].Digest {
			return fmt.Errorf(
				"%w: %s layer has digest %s, the manifest has %s", ErrInconsistent, l.Layer.Kind, l.Digest,
				m.Layers[i].Digest,
			)
		}
	}
	if again.Digest != m.Digest {
		return fmt.Errorf("%w: the bundle has digest %s, the manifest has %s", ErrInconsistent, again.Digest, m.Digest)
	}
	return nil
}

// CheckEncoded is Check for a manifest that was not read from its encoding: one that DecodeManifest would not read is
// refused too.
func (m Manifest) CheckEncoded() error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	if err := checkLimits(data, "manifest"); err != nil {
		return err
	}
	return m.Check()
}

// Encode returns the manifest as indented JSON with one newline at the end, which people and programs read.
func (m Manifest) Encode() ([]byte, error) {
	data, err := marshalJSON(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, fmt.Errorf("indenting manifest: %w", err)
	}
	return out.Bytes(), nil
}

// marshalJSON is json.Marshal without HTML escapes, which would make paths and URLs hard to read.
func marshalJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding %T: %w", v, err)
	}
	return out.Bytes(), nil
}

// CheckSchema checks the schema version of one JSON value, before its fields are read: a newer format is a *SchemaError
// and not an unknown field.
func CheckSchema(data []byte, what string, newest int) error {
	var head struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	switch {
	case head.Schema < 1:
		return fmt.Errorf("reading %s: no schema version in it", what)
	case head.Schema > newest:
		return &SchemaError{What: what, Have: head.Schema, Want: newest}
	}
	return nil
}

// MaxManifest is the largest encoding of a manifest, in bytes, and maxValues the largest number of values in it. A
// thousand files make a manifest of 0.3 MB with 7,000 values. An entry without fields takes 3 bytes to write and up to
// 400 in memory.
const (
	MaxManifest = 16 << 20
	maxValues   = 200_000
)

// CheckValues returns an error if JSON has more values than limit: objects, lists and their members. It is called
// before the values are built, and takes no memory.
func CheckValues(data []byte, what string, limit int) error {
	n, text := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case !text && (c == ',' || c == '{' || c == '['):
			n++
		}
		if n > limit {
			return fmt.Errorf("%w: %s has more than %d values", ErrTooLarge, what, limit)
		}
	}
	return nil
}

// ErrTooLarge is wrapped by the errors for values that are larger than any bundle.
var ErrTooLarge = errors.New("too large")

// checkLimits checks the size and the schema of an encoding, before it is decoded.
func checkLimits(data []byte, what string) error {
	if len(data) > MaxManifest {
		return fmt.Errorf("%w: %s has more than %d bytes", ErrTooLarge, what, MaxManifest)
	}
	if err := CheckValues(data, what, maxValues); err != nil {
		return err
	}
	return CheckSchema(data, what, Schema)
}

// decodeStrict reads one JSON value strictly.
func decodeStrict(data []byte, what string, into any) error {
	if err := checkLimits(data, what); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading %s: something follows the value", what)
	}
	return nil
}
