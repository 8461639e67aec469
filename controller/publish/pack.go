package publish

import (
	"wmco/bundle"
	"wmco/bundle/published"
)

// Packer packs bundles for publication. A cluster layer is packed once for all nodes that share it.
type Packer struct {
	layers   published.Packer
	clusters map[bundle.Digest]*published.Packed
}

// Wanted packs the bundle of a node; cluster is the digest of its cluster layer.
func (p *Packer) Wanted(node string, b bundle.Bundle, cluster bundle.Digest) (Wanted, error) {
	if p.clusters[cluster] == nil {
		packed, err := p.layers.Pack(b.Cluster)
		if err != nil {
			return Wanted{}, err
		}
		if p.clusters == nil {
			p.clusters = map[bundle.Digest]*published.Packed{}
		}
		p.clusters[cluster] = &packed
	}
	own, err := p.layers.Pack(b.Node)
	if err != nil {
		return Wanted{}, err
	}
	w := Wanted{Node: node, Cluster: p.clusters[cluster], Own: own}
	w.Bundle, err = bundle.DigestLayers(w.Cluster.Digest, own.Digest)
	return w, err
}
