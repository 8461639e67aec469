package layers

import (
	"fmt"

	"wmco/bundle"
	"wmco/bundle/published"
)

// Packer packs bundles for publication. A cluster layer is packed once for all nodes that share it.
type Packer struct {
	layers   published.Packer
	clusters map[bundle.Digest]sharedLayer
}

// sharedLayer is a cluster layer, or why it cannot be packed.
type sharedLayer struct {
	packed *published.Packed
	err    error
}

// Wanted packs the bundle of a node; cluster is the digest of its cluster layer. A layer that cannot be published for its size is
// archive.ErrTooLarge.
func (p *Packer) Wanted(node string, b bundle.Bundle, cluster bundle.Digest) (Wanted, error) {
	shared, ok := p.clusters[cluster]
	if !ok {
		packed, err := p.layers.Pack(b.Cluster)
		shared = sharedLayer{&packed, err}
		if p.clusters == nil {
			p.clusters = map[bundle.Digest]sharedLayer{}
		}
		p.clusters[cluster] = shared
	}
	if shared.err != nil {
		return Wanted{}, fmt.Errorf("packing the layer that all nodes share: %w", shared.err)
	}
	own, err := p.layers.Pack(b.Node)
	if err != nil {
		return Wanted{}, fmt.Errorf("packing the layer of node %s: %w", node, err)
	}
	w := Wanted{Node: node, Cluster: shared.packed, Own: own}
	w.Bundle, err = bundle.DigestLayers(w.Cluster.Digest, own.Digest)
	return w, err
}
