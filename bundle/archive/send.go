package archive

import (
	"context"
	"io"
	"slices"

	"wmco/bundle"
)

// Request is what a host asked for.
type Request struct {
	Manifest bundle.Manifest
	// Source has at least the contents that are Missing.
	Source Source
	// Missing are the contents that the host lacks, each with the numbers of the parts that it has already.
	Missing map[bundle.Digest][]int
}

// Send writes a stream with the manifest, the list of those contents of the manifest that the source has, and the parts
// that the host lacks. It holds no more than a few MB in memory. Before it writes anything it checks that all contents
// are available, and returns fs.ErrNotExist otherwise. After an error the stream is incomplete.
//
// The context is checked between reads. To end a write that hangs, close the connection below w.
func Send(ctx context.Context, w io.Writer, r Request) error {
	d, err := r.Deliver(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	out, err := NewWriter(w, r.Manifest, d.Contents())
	if err != nil {
		return err
	}
	for {
		part, stored, err := d.Next()
		if atEnd(err) {
			return out.Close()
		}
		if err != nil {
			return err
		}
		if err := out.WritePart(part, stored); err != nil {
			return err
		}
	}
}

// Contents returns the contents of the source that the manifest names, in the order of their digests.
func (r Request) Contents() []Content {
	needed := sizesByDigest(r.Manifest)
	all := slices.DeleteFunc(slices.Clone(r.Source.Contents()), func(c Content) bool {
		_, ok := needed[c.Digest]
		return !ok
	})
	sortContents(all)
	return all
}
