package archive

import "wmco/bundle"

// Contents prepares the contents of many bundles. A cluster layer is compressed once for all nodes that share it. It is
// not for use by several goroutines at once.
type Contents struct {
	others []Source
	layers map[bundle.Digest]Source
}

// NewContents returns the contents of bundles together with those of other sources, such as a payload.
func NewContents(others ...Source) *Contents {
	return &Contents{others: others, layers: map[bundle.Digest]Source{}}
}

// Of returns everything that a host with this bundle may need. Cluster is the digest of its cluster layer. Errors are
// those of FromBundle.
func (c *Contents) Of(b bundle.Bundle, cluster bundle.Digest) (Source, error) {
	shared, ok := c.layers[cluster]
	if !ok {
		var err error
		if shared, err = FromBundle(bundle.Bundle{Cluster: b.Cluster}); err != nil {
			return nil, err
		}
		c.layers[cluster] = shared
	}
	own, err := FromBundle(bundle.Bundle{Node: b.Node})
	if err != nil {
		return nil, err
	}
	return Join(append([]Source{shared, own}, c.others...)...), nil
}

// All returns the request of a host that has none of the contents yet.
func All(m bundle.Manifest, s Source) Request {
	r := Request{Manifest: m, Source: s, Missing: map[bundle.Digest][]int{}}
	for _, d := range Needs(m) {
		r.Missing[d] = nil
	}
	return r
}
