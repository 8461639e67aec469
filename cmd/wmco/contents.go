package main

import (
	"io"
	"io/fs"
	"strings"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/payload/store"
)

// sources makes the contents of bundles ready to send. What machines share is compressed once.
type sources struct {
	payload archive.Source
	layers  map[bundle.Digest]archive.Source
}

// newSources takes executables from the payload in dir, if there is one.
func newSources(dir string) (*sources, error) {
	s := &sources{payload: archive.Join(), layers: map[bundle.Digest]archive.Source{}}
	if dir == "" {
		return s, nil
	}
	p, err := store.Open(dir)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	s.payload = newPayloadSource(p)
	return s, nil
}

// of is everything that a machine with this bundle may need.
func (s *sources) of(r rendered) (archive.Source, error) {
	shared, ok := s.layers[r.bundle.ClusterDigest]
	if !ok {
		var err error
		if shared, err = archive.FromBundle(bundle.Bundle{Cluster: r.bundle.Cluster}); err != nil {
			return nil, err
		}
		s.layers[r.bundle.ClusterDigest] = shared
	}
	own, err := archive.FromBundle(bundle.Bundle{Node: r.bundle.Node})
	if err != nil {
		return nil, err
	}
	return archive.Join(shared, own, s.payload), nil
}

// payloadSource hands out a payload's executables as they are stored.
type payloadSource struct {
	store    *store.Store
	contents []archive.Content
	names    map[string]string
}

func newPayloadSource(s *store.Store) *payloadSource {
	p := &payloadSource{store: s, names: map[string]string{}}
	for _, e := range s.Entries() {
		sha256 := strings.TrimPrefix(string(e.Raw.Digest), "sha256:")
		p.names[sha256] = e.Name
		p.contents = append(p.contents, archive.Content{Digest: e.Raw.Digest, SHA256: sha256, Size: e.Raw.Size, Stored: e.Stored.Size})
	}
	return p
}

// Contents implements archive.Source.
func (p *payloadSource) Contents() []archive.Content { return p.contents }

// Open implements archive.Source.
func (p *payloadSource) Open(sha256 string) (io.ReadCloser, error) {
	name, ok := p.names[sha256]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return opener(p.store.Stored, name)()
}

// opener opens one content of a store.
func opener(open func(string) (*store.Content, error), name string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		c, err := open(name)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}
