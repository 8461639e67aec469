package applier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/archive"
)

// receiver stores contents as they arrive. A large part is written while the next one is read, because flushing it to the
// disk takes as long as its transfer.
type receiver struct {
	*run
	digests map[string]bundle.Digest
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

// receive stores the contents that arrive.
func (r *run) receive(ctx context.Context, a *archive.Reader) error {
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	if err := r.checkNode(ctx, r.situation, a.Manifest); err != nil {
		return err
	}
	if err := r.claimRoots(ctx); err != nil {
		return err
	}
	in := &receiver{run: r, digests: map[string]bundle.Digest{}, checked: map[string]bool{}, buffers: make(chan *bytes.Buffer, partBuffers)}
	for range partBuffers {
		in.buffers <- &bytes.Buffer{}
	}
	sizes := map[string]archive.Content{}
	for _, c := range a.Contents {
		in.digests[c.SHA256], sizes[c.SHA256] = c.Digest, c
	}
	var err error
	for err == nil {
		err = in.next(ctx, a, sizes)
	}
	in.work.Wait()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, in.err)
}

// next stores one part, io.EOF at the end of all.
func (in *receiver) next(ctx context.Context, a *archive.Reader, sizes map[string]archive.Content) error {
	part, data, err := a.Next()
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	if err != nil {
		return &streamError{fmt.Errorf("receiving contents: %w", err)}
	}
	if err := errors.Join(ctx.Err(), in.failed()); err != nil {
		return err
	}
	if err := in.recheck(ctx, sizes[part.SHA256]); err != nil {
		return err
	}
	if sizes[part.SHA256].PartSize(part.Index) < largePart {
		return in.small(ctx, part, data)
	}
	return in.large(ctx, part, data)
}

// recheck reads a content that the host seems to have and is sent nevertheless: if it is corrupt, what arrives takes its place.
func (in *receiver) recheck(ctx context.Context, c archive.Content) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.situation.Store.Whole(c.SHA256) || in.checked[c.SHA256] {
		return nil
	}
	in.checked[c.SHA256] = true
	if _, err := in.situation.Store.Verify(ctx, plan.Content{SHA256: c.SHA256, Size: c.Size}); err != nil {
		return fmt.Errorf("reading a kept content: %w", err)
	}
	return nil
}

func (in *receiver) failed() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.err
}

func (in *receiver) small(ctx context.Context, part archive.Part, data io.Reader) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	from := &streamReader{from: data}
	if err := in.situation.Store.Put(ctx, part, from); err != nil {
		if from.err != nil {
			err = &streamError{err}
		}
		return fmt.Errorf("keeping a content: %w", err)
	}
	in.received(part)
	return nil
}

func (in *receiver) large(ctx context.Context, part archive.Part, data io.Reader) error {
	in.mu.Lock()
	wanted, err := in.situation.Store.Admit(ctx, part)
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
	in.work.Go(func() { in.keep(ctx, part, buffer) })
	return nil
}

// keep writes a part, and frees the buffer.
func (in *receiver) keep(ctx context.Context, part archive.Part, buffer *bytes.Buffer) {
	size := int64(buffer.Len())
	err := in.situation.Store.Write(ctx, part, bytes.NewReader(buffer.Bytes()))
	in.mu.Lock()
	defer in.mu.Unlock()
	in.buffers <- buffer
	if err != nil {
		in.err = errors.Join(in.err, fmt.Errorf("keeping a content: %w", err))
		return
	}
	in.situation.Store.Add(part, size)
	in.received(part)
}

// received sends an event when a content has arrived whole.
func (in *receiver) received(part archive.Part) {
	if in.situation.Store.Arrived(part.SHA256) {
		in.emit(Event{Event: EventReceived, Content: in.digests[part.SHA256]})
	}
}

// streamReader remembers whether the stream is what failed.
type streamReader struct {
	from io.Reader
	err  error
}

func (r *streamReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
