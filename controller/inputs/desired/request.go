package desired

import (
	"errors"
	"fmt"

	"wmco/bundle/archive"
	"wmco/payload/store"
)

// PayloadContents returns the contents of bundles, with the executables of a folder that make payload wrote, if one is
// named.
func PayloadContents(payload string) (*archive.Contents, error) {
	if payload == "" {
		return archive.NewContents(), nil
	}
	s, err := store.Open(payload)
	if err != nil {
		return nil, err
	}
	return archive.NewContents(s.Source()), nil
}

// ErrFactsUnknown means that the bundle of a node lacks the entries that depend on the facts of its host.
var ErrFactsUnknown = errors.New("the bundle of a node without facts is a preview, which would remove from its host what the facts decide")

// ArchiveRequest returns what a host that has none of the contents yet is sent. The bundle of a node without facts is
// an ErrFactsUnknown.
func (r Rendered) ArchiveRequest(contents *archive.Contents) (archive.Request, error) {
	if r.Node.Incomplete() {
		return archive.Request{}, fmt.Errorf("%s: %w: give them with --facts", r.Node.ID(), ErrFactsUnknown)
	}
	m, err := r.Bundle.Manifest()
	if err != nil {
		return archive.Request{}, err
	}
	source, err := contents.Of(r.Bundle.Bundle, r.Bundle.ClusterDigest)
	return archive.All(m, source), err
}
