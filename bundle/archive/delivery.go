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

// Delivery is what a Reader of the stream would return, without the stream: the list of contents, and one by one the
// parts that the host lacks. It is not for use by several goroutines at once.
type Delivery struct {
	ctx      context.Context //nolint:containedctx // io.Reader has no other way to carry it
	source   Source
	contents []Content
	// rest are the contents that come after the open one.
	rest []lacking
	open *openContent
	// over is the error that it ended with.
	over error
}

// Deliver checks that all contents that the host lacks are available, and returns fs.ErrNotExist otherwise. The context
// is checked between reads.
func (r Request) Deliver(ctx context.Context) (*Delivery, error) {
	d := &Delivery{ctx: ctx, source: r.Source, contents: r.Contents()}
	var err error
	if d.rest, err = r.lackingContents(d.contents); err != nil {
		return nil, err
	}
	return d, nil
}

// Contents returns the contents of the manifest that the source has, in the order of their digests, whether their parts
// follow or not.
func (d *Delivery) Contents() []Content { return d.contents }

// Next returns the next part and its bytes, which are valid until Next is called again and need not be read. It returns
// io.EOF after the last part.
func (d *Delivery) Next() (Part, io.Reader, error) {
	if d.over != nil {
		return Part{}, nil, d.over
	}
	p, stored, err := d.nextPart()
	if err != nil {
		d.Close()
		d.over = err
	}
	return p, stored, err
}

func (d *Delivery) nextPart() (Part, io.Reader, error) {
	for {
		if d.ctx.Err() != nil {
			return Part{}, nil, context.Cause(d.ctx)
		}
		if d.open != nil {
			p, stored, err := d.open.nextPart()
			if !atEnd(err) {
				return p, stored, err
			}
			d.Close()
		}
		if len(d.rest) == 0 {
			return Part{}, nil, io.EOF
		}
		if err := d.openNext(); err != nil {
			return Part{}, nil, err
		}
	}
}

func (d *Delivery) openNext() error {
	c := d.rest[0]
	stored, err := d.source.Open(c.content.SHA256)
	if err != nil {
		return fmt.Errorf("opening content %s: %w", c.content.Digest, err)
	}
	in := readerFunc(func(p []byte) (int, error) {
		if d.ctx.Err() != nil {
			return 0, context.Cause(d.ctx)
		}
		return stored.Read(p)
	})
	d.rest, d.open = d.rest[1:], &openContent{lacking: c, stored: stored, in: in}
	return nil
}

// Close closes the content that is being read.
func (d *Delivery) Close() {
	if d.open != nil {
		_ = d.open.stored.Close() // it was only read
		d.open = nil
	}
}

// lacking is a content of which the host lacks parts.
type lacking struct {
	content Content
	// parts are by the number of the part, minus one: true for one that the host lacks.
	parts []bool
}

// lackingContents returns what the host lacks, in the order of the parts' names.
func (r Request) lackingContents(contents []Content) ([]lacking, error) {
	there := map[bundle.Digest]Content{}
	for _, c := range contents {
		there[c.Digest] = c
	}
	wanted := map[string]lacking{}
	for _, d := range slices.Sorted(maps.Keys(r.Missing)) {
		c, ok := there[d]
		if !ok {
			return nil, fmt.Errorf("looking for content %s: %w", d, fs.ErrNotExist)
		}
		if _, ok := wanted[c.SHA256]; !ok {
			wanted[c.SHA256] = lacking{content: c, parts: make([]bool, c.Parts())}
		}
		wanted[c.SHA256].markMissing(r.Missing[d])
	}
	all := slices.Collect(maps.Values(wanted))
	slices.SortFunc(all, func(a, b lacking) int { return strings.Compare(a.content.SHA256, b.content.SHA256) })
	return all, nil
}

// markMissing marks the parts that the host does not have. Impossible numbers belong to another stored form, of which
// no part can be used.
func (l lacking) markMissing(has []int) {
	n := l.content.Parts()
	if slices.ContainsFunc(has, func(i int) bool { return i < 1 || i > n }) {
		has = nil
	}
	for i := range l.parts {
		l.parts[i] = l.parts[i] || !slices.Contains(has, i+1)
	}
}

// openContent is a content whose stored form is being read.
type openContent struct {
	lacking

	stored io.ReadCloser
	// in reads stored until the context ends.
	in io.Reader
	// index is the number of the part that was returned last, unread how much of it was not read.
	index  int
	unread *io.LimitedReader
}

// nextPart returns the next part that the host lacks, and skips the others and what was not read of the one before.
// After the last part it checks that the stored form is not longer than the source reported, and returns io.EOF.
func (c *openContent) nextPart() (Part, io.Reader, error) {
	if c.unread != nil && c.unread.N > 0 {
		if err := c.skipBytes(c.unread.N); err != nil {
			return Part{}, nil, err
		}
	}
	for c.index < len(c.parts) {
		c.index++
		size := c.content.PartSize(c.index)
		if c.parts[c.index-1] {
			c.unread = &io.LimitedReader{R: c.in, N: size}
			return c.content.Part(c.index), c.unread, nil
		}
		if err := c.skipBytes(size); err != nil {
			return Part{}, nil, err
		}
	}
	return Part{}, nil, c.checkEnd()
}

// skipBytes skips bytes of the part that is now read.
func (c *openContent) skipBytes(size int64) error {
	var err error
	if s, ok := c.stored.(io.Seeker); ok {
		_, err = s.Seek(size, io.SeekCurrent)
	} else {
		_, err = io.CopyN(io.Discard, c.in, size)
	}
	if err != nil {
		return fmt.Errorf("skipping part %d of content %s: %w", c.index, c.content.Digest, notEnd(err))
	}
	return nil
}

// checkEnd returns io.EOF at the end of the stored form.
func (c *openContent) checkEnd() error {
	n, err := io.ReadFull(c.in, make([]byte, 1))
	switch {
	case n > 0:
		return fmt.Errorf(
			"content %s: the source has more than the %d stored bytes that it lists", c.content.Digest,
			c.content.Stored,
		)
	case atEnd(err):
		return io.EOF
	default:
		return fmt.Errorf("reading content %s: %w", c.content.Digest, err)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
