package layers

import (
	"context"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
)

// Cache keeps the layers that are in use, opened and packed, by their digest: a layer never changes. A Cache is not for
// use by several goroutines.
type Cache struct {
	// Live reads the Secrets of layers in Namespace, the operator's.
	Live      client.Reader
	Namespace string

	packer published.Packer
	known  map[bundle.Digest]*cached
}

// cached is a layer, and what was made of it.
type cached struct {
	layer bundle.Layer
	// packed is nil before it was packed; err is why that cannot be.
	packed *published.Packed
	err    error
	// used is true if the layer was asked for since the last DropUnused.
	used bool
}

// DropUnused drops the layers that were not asked for since it was called last, and gives the memory of the compressor
// back, which is 12 MiB.
func (c *Cache) DropUnused() {
	c.packer = published.Packer{}
	maps.DeleteFunc(c.known, func(_ bundle.Digest, l *cached) bool {
		used := l.used
		l.used = false
		return !used
	})
}

// LookupLayer returns a layer that is known. It does not count as asked for.
func (c *Cache) LookupLayer(d bundle.Digest) (bundle.Layer, bool) {
	l, ok := c.known[d]
	if !ok {
		return bundle.Layer{}, false
	}
	return l.layer, true
}

// AddLayer notes a layer that was rendered, with its digest.
func (c *Cache) AddLayer(d bundle.Digest, l bundle.Layer) *cached {
	known, ok := c.known[d]
	if !ok {
		if c.known == nil {
			c.known = map[bundle.Digest]*cached{}
		}
		known = &cached{}
		c.known[d] = known
	}
	// of the newest rendering, which is kept anyway: that of an earlier one would be kept beside it
	known.used, known.layer = true, l
	return known
}

// ReadLayer returns a published layer: one that is known, that is inline, or that Secrets hold.
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

// PackLayer returns a layer as it is published. One that cannot be published for its size is archive.ErrTooLarge.
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
