package applier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// ContentSource is where a run gets the contents of a bundle from: *archive.Reader reads them from a stream,
// *archive.Delivery from the memory or the disk of this process. The engine trusts neither: it checks the list against
// the manifest, the parts against the list, and the bytes of a content, before anything uses them, against its digest.
type ContentSource interface {
	// Contents returns those of the manifest that the source has, in the order of their digests, whether their parts
	// follow or not.
	Contents() []archive.Content
	// Next returns the next part, in the order of their names, and its bytes, which are valid until Next is called
	// again and need not be read. After the last part it returns io.EOF.
	Next() (archive.Part, io.Reader, error)
}

// receiver stores contents as they arrive. A large part is written while the next one is read, because flushing it to
// the disk takes as long as its transfer.
type receiver struct {
	store    *records.Store
	progress *progress
	from     ContentSource
	checker  *archive.Checker
	digests  map[string]bundle.Digest
	// checked are the contents that were whole when parts of them arrived, by sha256.
	checked map[string]bool

	work sync.WaitGroup
	// buffers are the free ones; the others are being written to the disk.
	buffers chan *bytes.Buffer

	// mu is for the store and for err, the first error of a write.
	mu  sync.Mutex
	err error
}

const (
	// largePart is the size in bytes from which a part is written while others are read.
	largePart = 1 << 20
	// partBuffers limits the memory that this takes, in units of archive.PartSize.
	partBuffers = 2
)

// receiveContents stores the contents of the record that arrive.
func (r *run) receiveContents(ctx context.Context, record records.BundleRecord, from ContentSource) error {
	if err := r.engine.prepareFolders(ctx); err != nil {
		return err
	}
	if err := r.openRecords(ctx); err != nil {
		return err
	}
	if err := r.engine.checkNodeName(ctx, r.situation, record.Manifest); err != nil {
		return err
	}
	if err := r.quarantine.claimRoots(ctx, r.records); err != nil {
		return err
	}
	checker, err := archive.NewChecker(record.Manifest, record.Contents)
	if err != nil {
		return err
	}
	in := &receiver{store: r.records.Store, progress: r.progress, from: from, checker: checker,
		digests: map[string]bundle.Digest{}, checked: map[string]bool{}, buffers: make(chan *bytes.Buffer, partBuffers)}
	for range partBuffers {
		in.buffers <- &bytes.Buffer{}
	}
	for _, c := range record.Contents {
		in.digests[c.SHA256] = c.Digest
	}
	for err == nil {
		err = in.receivePart(ctx)
	}
	in.work.Wait()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, in.err)
}

// receivePart stores one part, io.EOF at the end of all.
func (in *receiver) receivePart(ctx context.Context) error {
	part, data, err := in.from.Next()
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	var content archive.Content
	if err == nil {
		content, err = in.checker.Part(part)
	}
	if err != nil {
		return &streamError{fmt.Errorf("receiving contents: %w", err)}
	}
	if err := errors.Join(ctx.Err(), in.firstFailure()); err != nil {
		return err
	}
	if err := in.recheckContent(ctx, content); err != nil {
		return err
	}
	size := content.PartSize(part.Index)
	stored := &streamReader{from: data, left: size}
	if size < largePart {
		return in.receiveSmall(ctx, part, stored)
	}
	return in.receiveLarge(ctx, part, stored)
}

// recheckContent reads a content that the host seems to have and is sent nevertheless: if it is corrupt, what arrives
// takes its place.
func (in *receiver) recheckContent(ctx context.Context, c archive.Content) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.store.IsWhole(c.SHA256) || in.checked[c.SHA256] {
		return nil
	}
	in.checked[c.SHA256] = true
	if _, err := in.store.VerifyContent(ctx, plan.Content{SHA256: c.SHA256, Size: c.Size}); err != nil {
		return fmt.Errorf("reading a kept content: %w", err)
	}
	return nil
}

func (in *receiver) firstFailure() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.err
}

func (in *receiver) receiveSmall(ctx context.Context, part archive.Part, data *streamReader) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.store.PutPart(ctx, part, data); err != nil {
		if data.err != nil {
			err = &streamError{err}
		}
		return fmt.Errorf("keeping a content: %w", err)
	}
	in.emitReceived(part)
	return nil
}

func (in *receiver) receiveLarge(ctx context.Context, part archive.Part, data *streamReader) error {
	in.mu.Lock()
	wanted, err := in.store.AdmitPart(ctx, part)
	in.mu.Unlock()
	if err != nil {
		return fmt.Errorf("keeping a content: %w", err)
	}
	if !wanted {
		_, err := io.Copy(io.Discard, data)
		return err
	}
	buffer := <-in.buffers
	buffer.Reset()
	buffer.Grow(archive.PartSize + bytes.MinRead) // with room to see the end
	if _, err := buffer.ReadFrom(data); err != nil {
		return &streamError{fmt.Errorf("receiving contents: %w", err)}
	}
	in.work.Go(func() { in.storePart(ctx, part, buffer) })
	return nil
}

// storePart writes a part, and frees the buffer.
func (in *receiver) storePart(ctx context.Context, part archive.Part, buffer *bytes.Buffer) {
	size := int64(buffer.Len())
	err := in.store.WritePart(ctx, part, bytes.NewReader(buffer.Bytes()))
	in.mu.Lock()
	defer in.mu.Unlock()
	in.buffers <- buffer
	if err != nil {
		in.err = errors.Join(in.err, fmt.Errorf("keeping a content: %w", err))
		return
	}
	in.store.AddPart(part, size)
	in.emitReceived(part)
}

// emitReceived sends an event when a content has arrived whole.
func (in *receiver) emitReceived(part archive.Part) {
	if in.store.HasArrived(part.SHA256) {
		in.progress.sendEvent(protocol.Event{Event: protocol.EventReceived, Content: in.digests[part.SHA256]})
	}
}

// streamReader reads a part, which has as many bytes as in the list, and remembers whether the stream has failed.
type streamReader struct {
	from io.Reader
	// left is how many bytes have not been read.
	left int64
	err  error
}

func (r *streamReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p[:min(int64(len(p)), r.left+1)])
	r.left -= int64(n)
	switch {
	case r.left < 0:
		err = fmt.Errorf("%w: a part has more bytes than listed", archive.ErrMalformed)
	case r.left > 0 && err == io.EOF: //nolint:errorlint // a wrapped one is the end of something else
		err = io.ErrUnexpectedEOF
	}
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
