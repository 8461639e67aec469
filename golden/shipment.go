package golden

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/payload/store"
	"wmco/render"
)

// Key is that of the digests of secrets where a case is applied to a machine: the same in every run, so that they can be
// kept.
func Key() bundle.Key { return bundle.Key("the key of no cluster, for tests") }

// Shipment is a bundle with all contents that a machine may need, ready to be sent.
type Shipment struct {
	Bundle   bundle.Bundle
	Manifest bundle.Manifest
	// Node is what the bundle was rendered for.
	Node   render.Node
	source archive.Source
}

// Ship renders the one node of the case for a machine, with digests of Key. Inputs that are refused are ErrRefused.
func (c Case) Ship(ctx context.Context, dir string) (Shipment, error) {
	r, err := c.Gather(ctx, dir)
	if err != nil {
		return Shipment{}, err
	}
	o, err := c.Options(ctx, dir)
	if err != nil {
		return Shipment{}, err
	}
	o.Key = Key()
	list, findings, err := c.Render(r, o)
	if err != nil {
		return Shipment{}, fmt.Errorf("%w: %+v", err, findings)
	}
	if len(list) != 1 {
		return Shipment{}, fmt.Errorf("shipping %q: it has %d nodes, write the one", dir, len(list))
	}
	return c.ship(list[0], dir)
}

func (c Case) ship(r Rendered, dir string) (Shipment, error) {
	m, err := r.Bundle.Manifest()
	if err != nil {
		return Shipment{}, err
	}
	source, err := archive.FromBundle(r.Bundle.Bundle)
	if err != nil {
		return Shipment{}, err
	}
	s := Shipment{Bundle: r.Bundle.Bundle, Manifest: m, Node: r.Node, source: source}
	if c.Payload == "" {
		return s, nil
	}
	executables, err := executables(filepath.Join(dir, c.Payload))
	s.source = archive.Join(source, executables)
	return s, err
}

// executables are those of a payload, small ones: they are held in memory.
func executables(dir string) (archive.Source, error) {
	from, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	var l bundle.Layer
	for _, e := range from.Entries() {
		raw, err := from.Raw(e.Name)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(raw)
		if err != nil {
			return nil, fmt.Errorf("reading executable %s: %w", e.Name, err)
		}
		if err := raw.Close(); err != nil {
			return nil, fmt.Errorf("reading executable %s: %w", e.Name, err)
		}
		l.Files = append(l.Files, bundle.File{Path: e.Path, Digest: e.Raw.Digest, Size: e.Raw.Size, Content: bundle.Content{Data: data}})
	}
	return archive.FromBundle(bundle.Bundle{Cluster: l})
}

// All are all contents of the shipment, none of which has any part on the machine.
func (s Shipment) All() map[bundle.Digest][]int {
	all := map[bundle.Digest][]int{}
	for _, d := range archive.Needs(s.Manifest) {
		all[d] = nil
	}
	return all
}

// Send writes what a machine reads that lacks these contents.
func (s Shipment) Send(ctx context.Context, w io.Writer, missing map[bundle.Digest][]int) error {
	return archive.Send(ctx, w, archive.Request{Manifest: s.Manifest, Source: s.source, Missing: missing})
}

// Content is the raw bytes of a file of the shipment.
func (s Shipment) Content(path string) ([]byte, error) {
	d := s.digest(path)
	for _, c := range s.source.Contents() {
		if c.Digest != d {
			continue
		}
		stored, err := s.source.Open(c.SHA256)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(archive.Decode(stored, c))
		if err != nil {
			return nil, fmt.Errorf("reading content of %s: %w", path, err)
		}
		return data, stored.Close()
	}
	return nil, fmt.Errorf("reading content of %s: the bundle has no such file", path)
}

func (s Shipment) digest(path string) bundle.Digest {
	key := bundle.FoldPath(path)
	for _, f := range s.Bundle.Files() {
		if bundle.FoldPath(f.Path) == key {
			return f.Digest
		}
	}
	for _, p := range s.Bundle.Payload() {
		if bundle.FoldPath(p.Path) == key {
			return p.Digest
		}
	}
	return ""
}
