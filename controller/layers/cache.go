package layers

import (
	"context"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
)

// Cache keeps the layers that are in use, opened and packed, by their digest: a layer never changes. It is not safe for
// concurrent use.
type Cache struct {
	// Live reads the Secrets of layers in Namespace, the operator's.
	Live      client.Reader
	Namespace string

	packer published.Packer
	known  map[bundle.Digest]*cached
}

// cached is a layer, opened and packed.
type cached struct {
	layer bundle.Layer
	// packed is nil before it is packed; err is why it cannot be packed.
	packed *published.Packed
	err    error
	// used is true if the layer was used since the last DropUnused.
	used bool
}

// DropUnused drops the layers that were not used since the last call, and frees the memory of the compressor (12 MiB).
func (c *Cache) DropUnused() {
	c.packer = published.Packer{}
	maps.DeleteFunc(c.known, func(_ bundle.Digest, l *cached) bool {
		used := l.used
		l.used = false
		return !used
	})
}

// LookupLayer returns a cached layer. It does not count as a use.
func (c *Cache) LookupLayer(d bundle.Digest) (bundle.Layer, bool) {
	l, ok := c.known[d]
	if !ok {
		return bundle.Layer{}, false
	}
	return l.layer, true
}

// AddLayer adds a rendered layer with its digest.
func (c *Cache) AddLayer(d bundle.Digest, l bundle.Layer) *cached {
	known, ok := c.known[d]
	if !ok {
		if c.known == nil {
			c.known = map[bundle.Digest]*cached{}
		}
		known = &cached{}
		c.known[d] = known
	}
	// the layer of the newest rendering is in memory anyway: an earlier one would need memory too
	known.used, known.layer = true, l
	return known
}

// ReadLayer returns a published layer from the cache, the inline data or the Secrets.
func (c *Cache) ReadLayer(ctx context.Context, l published.Layer) (bundle.Layer, error) {
	if known, ok := c.known[l.Digest]; ok {
		known.used = true
		return known.layer, nil
	}
	var layer bundle.Layer
	var err error
	if len(l.Inline) > 0 {
		layer, err = l.Open(nil)
	} else {
		layer, err = ReadLayer(ctx, c.Live, c.Namespace, l.Digest)
	}
	if err != nil {
		return bundle.Layer{}, err
	}
	c.AddLayer(l.Digest, layer)
	return layer, nil
}

// PackLayer returns a layer as it is published. If it is too large for that, the error is archive.ErrTooLarge.
func (c *Cache) PackLayer(d bundle.Digest, l bundle.Layer) (*published.Packed, error) {
	known := c.AddLayer(d, l)
	if known.packed == nil && known.err == nil {
		packed, err := c.packer.Pack(l)
		known.packed, known.err = &packed, err
	}
	if known.err != nil {
		return nil, known.err
	}
	return known.packed, nil
}

// PackWanted packs the bundle of a node, whose layers have these digests.
func (c *Cache) PackWanted(node string, b bundle.Bundle, cluster, own bundle.Digest) (Wanted, error) {
	w := Wanted{Node: node, Content: &b}
	var err error
	if w.Cluster, err = c.PackLayer(cluster, b.Cluster); err != nil {
		return Wanted{}, fmt.Errorf("packing the layer that all nodes share: %w", err)
	}
	packed, err := c.PackLayer(own, b.Node)
	if err != nil {
		return Wanted{}, fmt.Errorf("packing the layer of node %s: %w", node, err)
	}
	w.Own = *packed
	w.Bundle, err = bundle.DigestLayers(cluster, own)
	return w, err
}

// PackBundle is PackWanted for one bundle.
func PackBundle(node string, b bundle.Bundle) (Wanted, error) {
	cluster, err := b.Cluster.Digest()
	if err != nil {
		return Wanted{}, err
	}
	own, err := b.Node.Digest()
	if err != nil {
		return Wanted{}, err
	}
	return new(Cache).PackWanted(node, b, cluster, own)
}
