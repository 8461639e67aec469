package records

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// Store keeps contents on the host: those of bundles, in the parts and the form in which they were sent, and whole
// files that were there before us.
//
//	contents\<sha256>-000of002, ...-001of002      zstd, in parts
//	previous\<sha256>                             a second name of a file that is about to be replaced
type Store struct {
	host Files
	// parts are those that the host has, by sha256; sizes are their sizes in bytes.
	parts map[string][]archive.Part
	sizes map[archive.Part]int64
	// modified is when the last part of a content was written, by sha256, of those that an earlier run left.
	modified map[string]time.Time
	// previous are the sha256 of files that were kept, and linked those that have their first name again: two files of
	// equal contents must not become one.
	previous map[string]bool
	linked   map[string]bool
	// fresh are those of which parts arrived in this run.
	fresh map[string]bool
}

func openStore(ctx context.Context, r *Records) (*Store, error) {
	host := r.host
	s := &Store{
		host: host, parts: map[string][]archive.Part{}, sizes: map[archive.Part]int64{}, modified: map[string]time.Time{},
		previous: map[string]bool{}, linked: map[string]bool{}, fresh: map[string]bool{},
	}
	files, err := r.listFolder(ctx, DirContents)
	if err != nil {
		return nil, fmt.Errorf("listing contents: %w", HideContentName(err))
	}
	for _, f := range files {
		if p, err := archive.ParsePart(bundle.Base(f.Path)); err == nil && f.Kind == plan.FileRegular {
			s.parts[p.SHA256] = append(s.parts[p.SHA256], p)
			s.sizes[p] = f.Size
			if f.Modified.After(s.modified[p.SHA256]) {
				s.modified[p.SHA256] = f.Modified
			}
		}
	}
	kept, err := r.listFolder(ctx, DirPrevious)
	if err != nil {
		return nil, fmt.Errorf("listing kept files: %w", HideContentName(err))
	}
	for _, f := range kept {
		if f.Kind == plan.FileRegular {
			s.previous[bundle.Base(f.Path)] = true
		}
	}
	return s, nil
}

// listFolder returns the entries of a folder of records that counts.
func (r *Records) listFolder(ctx context.Context, dir string) ([]plan.FileInfo, error) {
	if !r.isTrusted(dir) {
		return nil, nil
	}
	return r.host.List(ctx, dir)
}

// HasContent reports whether a content is available, whole.
func (s *Store) HasContent(sum string) bool { return s.previous[sum] || s.IsWhole(sum) }

// IsWhole reports whether all parts of a content have arrived.
func (s *Store) IsWhole(sum string) bool {
	parts := s.parts[sum]
	return len(parts) > 0 && len(parts) == parts[0].Of
}

// MissingContents returns the sha256 of those contents of a bundle of which a part has not arrived.
func (s *Store) MissingContents(record BundleRecord) map[string]bool {
	missing := map[string]bool{}
	for _, c := range record.Contents {
		if !s.IsWhole(c.SHA256) {
			missing[c.SHA256] = true
		}
	}
	return missing
}

// PartsOf returns the numbers of the parts that have arrived.
func (s *Store) PartsOf(sum string) []int {
	var list []int
	for _, p := range s.parts[sum] {
		list = append(list, p.Index)
	}
	slices.Sort(list)
	return list
}

// PutPart keeps one part, unless the store has it.
func (s *Store) PutPart(ctx context.Context, p archive.Part, data io.Reader) error {
	wanted, err := s.AdmitPart(ctx, p)
	if err != nil {
		return err
	}
	if !wanted {
		_, err := io.Copy(io.Discard, data)
		return err
	}
	counted := &countingReader{Reader: data}
	if err := s.WritePart(ctx, p, counted); err != nil {
		return err
	}
	s.AddPart(p, counted.n)
	return nil
}

// PutFile keeps a file in the form in which it would have been sent. It takes as much memory as its parts.
func (s *Store) PutFile(ctx context.Context, path string, c plan.Content) error {
	in, err := s.host.Open(ctx, path)
	if err != nil {
		return err
	}
	var stored bytes.Buffer
	out := archive.Encode(&stored)
	_, err = io.Copy(out, contextReader{ctx, in})
	if err := errors.Join(err, out.Close(), in.Close()); err != nil {
		return err
	}
	return s.putWhole(ctx, c, stored.Bytes())
}

// PutText keeps a text in that form.
func (s *Store) PutText(ctx context.Context, text string) error {
	return s.putWhole(ctx, plan.ContentOf([]byte(text)), archive.Compress([]byte(text)))
}

func (s *Store) putWhole(ctx context.Context, c plan.Content, stored []byte) error {
	whole := archive.Content{SHA256: c.SHA256, Size: c.Size, Stored: int64(len(stored))}
	for i := range whole.Parts() {
		data := stored[:whole.PartSize(i+1)]
		stored = stored[len(data):]
		if err := s.PutPart(ctx, whole.Part(i+1), bytes.NewReader(data)); err != nil {
			return err
		}
	}
	return nil
}

// AdmitPart reports whether the store lacks a part.
func (s *Store) AdmitPart(ctx context.Context, p archive.Part) (bool, error) {
	have := s.parts[p.SHA256]
	if slices.Contains(have, p) {
		return false, nil
	}
	if len(have) > 0 && have[0].Of != p.Of {
		// It was compressed differently from what arrived before an interruption: the parts do not fit together.
		return true, s.discardContent(ctx, p.SHA256)
	}
	return true, nil
}

// WritePart writes a part that AdmitPart asked for; AddPart notes it afterwards.
func (s *Store) WritePart(ctx context.Context, p archive.Part, data io.Reader) error {
	return HideContentName(s.host.Write(ctx, partPath(p), bundle.AccessAdmins, data))
}

// AddPart notes that a part has been written.
func (s *Store) AddPart(p archive.Part, size int64) {
	s.sizes[p] = size
	s.parts[p.SHA256] = append(s.parts[p.SHA256], p)
	s.fresh[p.SHA256] = true
}

func partPath(p archive.Part) string { return DirContents + `\` + p.Name() }

func previousPath(sum string) string { return DirPrevious + `\` + sum }

// OpenContent returns the raw bytes of a content, which are checked at their end: a corrupt content is an
// *archive.CorruptError, and one that is not there fs.ErrNotExist.
func (s *Store) OpenContent(ctx context.Context, c plan.Content) (io.ReadCloser, error) {
	if s.IsWhole(c.SHA256) {
		// Errors do not name the digest, see HideContentName.
		stored := &partReader{ctx: ctx, store: s, parts: s.sortedParts(c.SHA256)}
		whole := archive.Content{Digest: bundle.Masked, SHA256: c.SHA256, Size: c.Size, Stored: s.storedSize(c.SHA256)}
		return decoded{archive.Decode(stored, whole), stored}, nil
	}
	if s.previous[c.SHA256] {
		f, err := s.host.Open(ctx, previousPath(c.SHA256))
		if err != nil {
			return nil, HideContentName(err)
		}
		return &checkedReader{ReadCloser: f, hash: sha256.New(), want: c.SHA256}, nil
	}
	return nil, fmt.Errorf("looking for a kept content: %w", fs.ErrNotExist)
}

// decoded closes the parts too.
type decoded struct {
	io.ReadCloser
	stored io.Closer
}

func (d decoded) Close() error { return errors.Join(d.ReadCloser.Close(), d.stored.Close()) }

// storedSize is the number of bytes of the parts of a content.
func (s *Store) storedSize(sum string) int64 {
	var n int64
	for _, p := range s.parts[sum] {
		n += s.sizes[p]
	}
	return n
}

func (s *Store) sortedParts(sum string) []archive.Part {
	return slices.SortedFunc(slices.Values(s.parts[sum]), func(a, b archive.Part) int { return a.Index - b.Index })
}

// CheckContent reads a content to its end and reports whether it is what it should be. It changes nothing.
func (s *Store) CheckContent(ctx context.Context, c plan.Content) (bool, error) {
	r, err := s.OpenContent(ctx, c)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(io.Discard, contextReader{ctx, r})
	err = errors.Join(err, r.Close())
	if isCorrupt(err) {
		return false, nil
	}
	return err == nil, err
}

// VerifyContent is CheckContent, and removes a corrupt content. A second form of it, as a file that was kept, takes its
// place.
func (s *Store) VerifyContent(ctx context.Context, c plan.Content) (bool, error) {
	for s.HasContent(c.SHA256) {
		right, err := s.CheckContent(ctx, c)
		if right || err != nil {
			return right, err
		}
		if err := s.discardContent(ctx, c.SHA256); err != nil {
			return false, err
		}
	}
	return false, nil
}

// isCorrupt reports whether reading found other bytes than those of the content.
func isCorrupt(err error) bool {
	var corrupt *archive.CorruptError
	return errors.As(err, &corrupt) || errors.Is(err, ErrDamaged)
}

// RejectCorrupt removes a content if err is that it is corrupt: parts from before and after an interruption may not
// fit together. The next run asks for all of it.
func (s *Store) RejectCorrupt(ctx context.Context, sum string, err error) error {
	if !isCorrupt(err) {
		return err
	}
	return errors.Join(err, s.discardContent(ctx, sum))
}

// discardContent removes all parts of a content, or the file that was kept if it has no whole content.
func (s *Store) discardContent(ctx context.Context, sum string) error {
	if !s.IsWhole(sum) && s.previous[sum] {
		if err := s.host.Remove(ctx, previousPath(sum)); err != nil {
			return err
		}
		delete(s.previous, sum)
	}
	for _, p := range s.parts[sum] {
		if err := s.host.Remove(ctx, partPath(p)); err != nil {
			return HideContentName(err)
		}
	}
	delete(s.parts, sum)
	return nil
}

// KeepFile makes sure that a file which is about to be replaced can be restored: from its content, which is read to its
// end, or, where there is none or it is corrupt, by a second name of the file.
func (s *Store) KeepFile(ctx context.Context, path string, c plan.Content) error {
	if s.IsWhole(c.SHA256) {
		if sound, err := s.VerifyContent(ctx, c); sound || err != nil {
			return err
		}
	}
	if s.previous[c.SHA256] {
		return nil
	}
	if err := s.host.Link(ctx, path, previousPath(c.SHA256)); err != nil {
		return HideContentName(err)
	}
	s.previous[c.SHA256] = true
	return nil
}

// RestoreFile moves a file that was kept by a second name to its path. It reports whether it did. It does not when the
// content is there in parts, when the file was restored already, when the program in its place runs, or when the file
// system has no links.
func (s *Store) RestoreFile(ctx context.Context, sum, path string) bool {
	if !s.previous[sum] || s.linked[sum] || s.IsWhole(sum) || s.host.Link(ctx, previousPath(sum), path) != nil {
		return false
	}
	s.linked[sum] = true
	return true
}

// HasArrived reports whether a content is whole and parts of it arrived in this run.
func (s *Store) HasArrived(sum string) bool { return s.fresh[sum] && s.IsWhole(sum) }

// sweepUnneeded removes what no repair of the bundles needs and no program has written since a time. What cannot be
// removed now is removed another time.
func (s *Store) sweepUnneeded(ctx context.Context, needed map[string]bool, since time.Time) {
	for sum := range s.parts {
		if !needed[sum] && (since.IsZero() || s.modified[sum].Before(since)) {
			_ = s.discardContent(ctx, sum)
		}
	}
	for sum := range s.previous {
		if s.host.Remove(ctx, previousPath(sum)) == nil {
			delete(s.previous, sum)
		}
	}
}

// Close closes the part that is being read.
func (r *partReader) Close() error {
	if r.open == nil {
		return nil
	}
	f := r.open
	r.open = nil
	return f.Close()
}

// Close closes the file.
func (r *checkedReader) Close() error { return HideContentName(r.ReadCloser.Close()) }
