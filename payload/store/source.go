package store

import (
	"io"
	"io/fs"
	"strings"

	"wmco/bundle/archive"
)

// Source returns the executables as archives take them: in their stored form, which is not compressed again.
func (s *Store) Source() archive.Source {
	src := &source{store: s, names: map[string]string{}}
	for _, e := range s.Entries() {
		sha256 := strings.TrimPrefix(string(e.Raw.Digest), "sha256:")
		src.names[sha256] = e.Name
		src.contents = append(src.contents, archive.Content{Digest: e.Raw.Digest, SHA256: sha256, Size: e.Raw.Size, Stored: e.Stored.Size})
	}
	return src
}

type source struct {
	store    *Store
	contents []archive.Content
	names    map[string]string
}

// Contents implements archive.Source.
func (s *source) Contents() []archive.Content { return s.contents }

// Open implements archive.Source.
func (s *source) Open(sha256 string) (io.ReadCloser, error) {
	name, ok := s.names[sha256]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return opened(s.store.Stored(name))
}

// OpenRaw returns the executable as it is on a node.
func (s *Store) OpenRaw(name string) (io.ReadCloser, error) { return opened(s.Raw(name)) }

// opened keeps a nil pointer from becoming a reader.
func opened(c *Content, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}
