package layers

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
)

// Cache keeps the layers that are in use, opened and packed, by their digest: a layer never changes. A layer that no user needed in its last round is
// forgotten. A Cache is not for use by several goroutines.
type Cache struct {
	// Live reads the Secrets of layers in Namespace, the operator's.
	Live      client.Reader
	Namespace string

	packer published.Packer
	known  map[bundle.Digest]*cached
	// needed are the digests of the last round of each user.
	needed map[string]map[bundle.Digest]bool
}

// cached is a layer, and what was made of it.
type cached struct {
	layer bundle.Layer
	// packed is nil before it was packed; err is why that cannot be.
	packed *published.Packed
	err    error
}

// Round is what one user of a Cache needs at one time.
type Round struct {
	cache  *Cache
	user   string
	needed map[bundle.Digest]bool
}

// BeginRound begins the next round of a user. What that needed in the one before is kept until the end of this one.
func (c *Cache) BeginRound(user string) *Round {
	if c.known == nil {
		c.known, c.needed = map[bundle.Digest]*cached{}, map[string]map[bundle.Digest]bool{}
	}
	return &Round{c, user, map[bundle.Digest]bool{}}
}

// EndRound ends a round, and gives the memory of the compressor back, which is 12 MiB.
func (r *Round) EndRound() {
	r.cache.packer = published.Packer{}
	r.cache.needed[r.user] = r.needed
	for d := range r.cache.known {
		if !r.cache.isNeeded(d) {
			delete(r.cache.known, d)
		}
	}
}

func (c *Cache) isNeeded(d bundle.Digest) bool {
	for _, round := range c.needed {
		if round[d] {
			return true
		}
	}
	return false
}

// LookupLayer returns a layer that is known, without needing it.
func (c *Cache) LookupLayer(d bundle.Digest) (bundle.Layer, bool) {
	l, ok := c.known[d]
	if !ok {
		return bundle.Layer{}, false
	}
	return l.layer, true
}

// AddLayer notes a layer that was rendered, with its digest.
func (r *Round) AddLayer(d bundle.Digest, l bundle.Layer) *cached {
	r.needed[d] = true
	known, ok := r.cache.known[d]
	if !ok {
		known = &cached{}
		r.cache.known[d] = known
	}
	known.layer = l // of the newest rendering, which is kept anyway: that of an earlier one would be kept beside it
	return known
}

// ReadLayer returns a published layer: one that is known, that is inline, or that Secrets hold.
func (r *Round) ReadLayer(ctx context.Context, l published.Layer) (bundle.Layer, error) {
	if known, ok := r.cache.known[l.Digest]; ok {
		r.needed[l.Digest] = true
		return known.layer, nil
	}
	var layer bundle.Layer
	var err error
	if len(l.Inline) > 0 {
		layer, err = l.Open(nil)
	} else {
		layer, err = ReadLayer(ctx, r.cache.Live, r.cache.Namespace, l.Digest)
	}
	if err != nil {
		return bundle.Layer{}, err
	}
	r.AddLayer(l.Digest, layer)
	return layer, nil
}

// PackLayer returns a layer as it is published. One that cannot be published for its size is archive.ErrTooLarge.
func (r *Round) PackLayer(d bundle.Digest, l bundle.Layer) (*published.Packed, error) {
	known := r.AddLayer(d, l)
	if known.packed == nil && known.err == nil {
		packed, err := r.cache.packer.Pack(l)
		known.packed, known.err = &packed, err
	}
	if known.err != nil {
		return nil, known.err
	}
	return known.packed, nil
}

// PackWanted packs the bundle of a node, whose layers have these digests.
func (r *Round) PackWanted(node string, b bundle.Bundle, cluster, own bundle.Digest) (Wanted, error) {
	w := Wanted{Node: node}
	var err error
	if w.Cluster, err = r.PackLayer(cluster, b.Cluster); err != nil {
		return Wanted{}, fmt.Errorf("packing the layer that all nodes share: %w", err)
	}
	packed, err := r.PackLayer(own, b.Node)
	if err != nil {
		return Wanted{}, fmt.Errorf("packing the layer of node %s: %w", node, err)
	}
	w.Own = *packed
	w.Bundle, err = bundle.DigestLayers(cluster, own)
	return w, err
}

// PackBundle is Round.PackWanted for one bundle.
func PackBundle(node string, b bundle.Bundle) (Wanted, error) {
	cluster, err := b.Cluster.Digest()
	if err != nil {
		return Wanted{}, err
	}
	own, err := b.Node.Digest()
	if err != nil {
		return Wanted{}, err
	}
	return new(Cache).BeginRound(node).PackWanted(node, b, cluster, own)
}
