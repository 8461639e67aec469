package executables

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"

	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/payload/sources"
)

// Registry fetches executables.
type Registry interface {
	// FetchStored returns the stored form of an executable. report is called with the bytes that have come. The error
	// names each place that was asked, and holds no secrets.
	FetchStored(ctx context.Context, l sources.List, x sources.Executable, report func(int64)) ([]byte, error)
}

// Missing fetches the executables of a list that a host lacks, one after the other.
type Missing struct {
	Registry Registry
	// Stage keeps the contents that the source has, and returns which of all the host lacks then.
	Stage func(ctx context.Context, all []archive.Content, from archive.Source) ([]bundle.Digest, error)
	Log   *slog.Logger
	// MayFetch is asked before each executable; nil is always.
	MayFetch func() bool
	// Note is called when there are more bytes.
	Note func(Bytes)
}

// Bytes are how much of the stored executables is there.
type Bytes struct {
	Present, Wanted int64
	// Kept is true when another executable is there whole.
	Kept bool
}

// FetchMissing reports whether all are on the host: not where MayFetch has ended it.
func (m Missing) FetchMissing(ctx context.Context, list sources.List) (whole bool, err error) {
	var all []archive.Content
	for _, x := range list.Executables {
		if c := x.RawContent(); !slices.ContainsFunc(all, func(o archive.Content) bool { return o.Digest == c.Digest }) {
			all = append(all, c)
		}
	}
	missing, err := m.Stage(ctx, all, stored{})
	if err != nil {
		return false, err
	}
	var b Bytes
	for _, c := range all {
		b.Wanted += c.Stored
		if !slices.Contains(missing, c.Digest) {
			b.Present += c.Stored
		}
	}
	m.Note(b)
	for _, x := range list.Executables {
		if !slices.Contains(missing, x.Raw.Digest) {
			continue
		}
		if m.MayFetch != nil && !m.MayFetch() {
			return false, nil
		}
		if missing, err = m.fetchOne(ctx, list, x, all, b); err != nil {
			return false, err
		}
		b.Present += x.Stored.Size
		m.Note(Bytes{b.Present, b.Wanted, true})
	}
	return true, nil
}

// fetchOne fetches one executable, and returns which of all the host lacks then.
func (m Missing) fetchOne(ctx context.Context, list sources.List, x sources.Executable, all []archive.Content, b Bytes) ([]bundle.Digest, error) {
	m.Log.Info("fetching an executable", "name", x.Name, "bytes", x.Stored.Size)
	data, err := m.Registry.FetchStored(ctx, list, x, func(n int64) { m.Note(Bytes{Present: b.Present + min(n, x.Stored.Size), Wanted: b.Wanted}) })
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", x.Name, err)
	}
	missing, err := m.Stage(ctx, all, stored{x.RawContent(), data})
	if err != nil {
		return nil, fmt.Errorf("keeping %s: %w", x.Name, err)
	}
	if slices.Contains(missing, x.Raw.Digest) {
		return nil, fmt.Errorf("%s could not be kept: it is not what the bundle names", x.Name)
	}
	return missing, nil
}

// stored is the source of one executable, or of none.
type stored struct {
	content archive.Content
	data    []byte
}

// Contents implements archive.Source.
func (s stored) Contents() []archive.Content {
	if s.data == nil {
		return nil
	}
	return []archive.Content{s.content}
}

// Open implements archive.Source.
func (s stored) Open(sha256 string) (io.ReadCloser, error) {
	if s.data == nil || sha256 != s.content.SHA256 {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(s.data)), nil
}
