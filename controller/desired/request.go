package desired

import (
	"wmco/bundle/archive"
	"wmco/payload/store"
)

// Contents returns the contents of bundles, with the executables of a folder that make payload wrote, if one is named.
func Contents(payload string) (*archive.Contents, error) {
	if payload == "" {
		return archive.NewContents(), nil
	}
	s, err := store.Open(payload)
	if err != nil {
		return nil, err
	}
	return archive.NewContents(s.Source()), nil
}

// Request returns what a host that has none of the contents yet is sent.
func (r Rendered) Request(contents *archive.Contents) (archive.Request, error) {
	m, err := r.Bundle.Manifest()
	if err != nil {
		return archive.Request{}, err
	}
	source, err := contents.Of(r.Bundle.Bundle, r.Bundle.ClusterDigest)
	return archive.All(m, source), err
}
