package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// The window is how far back zstd may refer. It is most of what reading costs in memory, so a reader refuses larger
// ones. The window of the stream is small, because nothing in it but the manifest repeats itself.
const (
	maxWindow    = 8 << 20
	streamWindow = 1 << 20
)

// Encode returns a writer that writes the stored form of raw bytes to w. The form depends on nothing but the bytes and
// the version of the compressor, not on how they are written. Close ends it and does not close w.
func Encode(w io.Writer) io.WriteCloser { return newStoredEncoder(w) }

// Compress returns the stored form of bytes, as Encode makes it.
func Compress(data []byte) []byte {
	var out bytes.Buffer
	compress(newStoredEncoder(&out), data)
	return out.Bytes()
}

// compress encodes data into memory, which cannot fail.
func compress(e *zstd.Encoder, data []byte) {
	if _, err := e.Write(data); err != nil {
		panic(err)
	}
	if err := e.Close(); err != nil {
		panic(err)
	}
}

// newStoredEncoder omits zstd's own checksum, because SHA-256 covers the raw bytes. Its buffer is that of one window
// and a block, not of two windows; what it writes is the same.
func newStoredEncoder(w io.Writer) *zstd.Encoder {
	return newEncoder(
		w, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithWindowSize(maxWindow),
		zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true),
	)
}

func newStreamEncoder(w io.Writer) *zstd.Encoder {
	return newEncoder(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(streamWindow), zstd.WithLowerEncoderMem(true))
}

// newEncoder works in the goroutine of the caller, so that nothing has to be stopped when a transfer is given up. Only
// options out of range are errors, and ours are constants.
func newEncoder(w io.Writer, options ...zstd.EOption) *zstd.Encoder {
	e, err := zstd.NewWriter(w, append(options, zstd.WithEncoderConcurrency(1))...)
	if err != nil {
		panic(err)
	}
	return e
}

// newDecoder works in the goroutine of the caller as well, within maxWindow of memory. It reads no more of r than the
// frames need. A reader that is in memory already must hide that (*bytes.Buffer): otherwise the decoder would decode
// all of it at once.
func newDecoder(r *meter) *zstd.Decoder {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic(err)
	}
	return d
}

// meter counts the bytes that are read and keeps the error that reading ended with, because decoders mix it with their
// own.
type meter struct {
	from io.Reader
	n    int64
	// broken is the error that reading ended with, other than io.EOF.
	broken error
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	m.n += int64(n)
	if err != nil && !atEnd(err) {
		m.broken = notEnd(err)
		return n, m.broken
	}
	return n, err
}

// atEnd reports whether a reader came to its end. Readers return io.EOF itself; a wrapped one is the end of something
// else, such as a connection.
func atEnd(err error) bool {
	return err == io.EOF //nolint:errorlint // a wrapped one is not meant
}

// notEnd returns an error that cannot be taken for the end.
func notEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %v", io.ErrUnexpectedEOF, err) //nolint:errorlint // the one in it must not be found
	}
	return err
}
