package archive

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

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
	contents := r.contents()
	wanted, err := r.wanted(contents)
	if err != nil {
		return err
	}
	out, err := NewWriter(w, r.Manifest, contents)
	if err != nil {
		return err
	}
	for _, d := range wanted {
		if err := d.send(ctx, r.Source, out); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return out.Close()
}

// contents returns the contents of the source that the manifest names.
func (r Request) contents() []Content {
	needed := sizes(r.Manifest)
	all := slices.DeleteFunc(slices.Clone(r.Source.Contents()), func(c Content) bool {
		_, ok := needed[c.Digest]
		return !ok
	})
	sortContents(all)
	return all
}

// delivery is a content of which the host lacks parts.
type delivery struct {
	content Content
	// lacks is by the number of the part, minus one.
	lacks []bool
}

// wanted returns what has to be sent, in the order of the parts' names.
func (r Request) wanted(contents []Content) ([]delivery, error) {
	there := map[bundle.Digest]Content{}
	for _, c := range contents {
		there[c.Digest] = c
	}
	wanted := map[string]delivery{}
	for _, d := range slices.Sorted(maps.Keys(r.Missing)) {
		c, ok := there[d]
		if !ok {
			return nil, fmt.Errorf("looking for content %s: %w", d, fs.ErrNotExist)
		}
		if _, ok := wanted[c.SHA256]; !ok {
			wanted[c.SHA256] = delivery{content: c, lacks: make([]bool, c.Parts())}
		}
		wanted[c.SHA256].miss(r.Missing[d])
	}
	all := slices.Collect(maps.Values(wanted))
	slices.SortFunc(all, func(a, b delivery) int { return strings.Compare(a.content.SHA256, b.content.SHA256) })
	return all, nil
}

// miss marks the parts that the host does not have. Impossible numbers belong to another stored form, of which no part
// can be used.
func (d delivery) miss(has []int) {
	n := d.content.Parts()
	if slices.ContainsFunc(has, func(i int) bool { return i < 1 || i > n }) {
		has = nil
	}
	for i := range d.lacks {
		d.lacks[i] = d.lacks[i] || !slices.Contains(has, i+1)
	}
}

func (d delivery) send(ctx context.Context, from Source, out *Writer) error {
	stored, err := from.Open(d.content.SHA256)
	if err != nil {
		return fmt.Errorf("opening content %s: %w", d.content.Digest, err)
	}
	defer func() { _ = stored.Close() }() // it was only read
	in := readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return stored.Read(p)
	})
	if err := d.parts(stored, in, out); err != nil {
		return err
	}
	return d.end(in)
}

// parts reads the stored form, and skips the parts that the host has.
func (d delivery) parts(stored, in io.Reader, out *Writer) error {
	for i, lacks := range d.lacks {
		if lacks {
			if err := out.WritePart(d.content.Part(i+1), in); err != nil {
				return err
			}
			continue
		}
		if err := skip(stored, in, d.content.PartSize(i+1)); err != nil {
			return fmt.Errorf("skipping part %d of content %s: %w", i+1, d.content.Digest, err)
		}
	}
	return nil
}

func skip(stored, in io.Reader, size int64) error {
	if s, ok := stored.(io.Seeker); ok {
		_, err := s.Seek(size, io.SeekCurrent)
		return err
	}
	_, err := io.CopyN(io.Discard, in, size)
	return err
}

// end checks that the stored form is not longer than the source reported.
func (d delivery) end(in io.Reader) error {
	n, err := io.ReadFull(in, make([]byte, 1))
	switch {
	case n > 0:
		return fmt.Errorf("content %s: the source has more than the %d stored bytes that it lists", d.content.Digest, d.content.Stored)
	case atEnd(err):
		return nil
	default:
		return fmt.Errorf("reading content %s: %w", d.content.Digest, err)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
