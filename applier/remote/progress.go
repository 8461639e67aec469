package remote

import (
	"context"
	"io"
)

// progressStep is how many bytes are progress.
const progressStep = 1 << 20

// progressReader and progressWriter call progress after each progressStep, so that single bytes are no progress.
type progressReader struct {
	io.Reader
	progress func()
	bytes    int
}

// Read implements io.Reader.
func (r *progressReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.bytes = countProgress(r.bytes+n, r.progress)
	return n, err
}

type progressWriter struct {
	io.Writer
	progress func()
	bytes    int
}

// Write implements io.Writer.
func (w *progressWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.bytes = countProgress(w.bytes+n, w.progress)
	return n, err
}

// countProgress calls progress if there are enough bytes, and returns those since then.
func countProgress(bytes int, progress func()) int {
	if bytes < progressStep {
		return bytes
	}
	progress()
	return 0
}

// reportProgress returns stdin, with calls of progress.
func reportProgress(stdin func(context.Context, io.Writer) error, progress func()) func(context.Context, io.Writer) error {
	if stdin == nil {
		return nil
	}
	return func(ctx context.Context, to io.Writer) error {
		return stdin(ctx, &progressWriter{Writer: to, progress: progress})
	}
}
