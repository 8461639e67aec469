package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// How far back zstd may refer. The window is most of what reading costs in memory, so a reader refuses larger ones. That of
// the stream is small, since nothing in it but the manifest repeats itself.
const (
	maxWindow    = 8 << 20
	streamWindow = 1 << 20
)

// Encode returns a writer that turns raw bytes into the stored form. The form depends on nothing but the bytes and the
// version of the compressor, not on how they are written. Close ends it and leaves w open.
func Encode(w io.Writer) io.WriteCloser { return newStoredEncoder(w) }

// Compress returns the stored form of raw bytes, as Encode makes it.
func Compress(raw []byte) []byte {
	var out bytes.Buffer
	compress(newStoredEncoder(&out), raw)
	return out.Bytes()
}

// compress writes raw through an encoder into memory, which cannot go wrong.
func compress(e *zstd.Encoder, raw []byte) {
	if _, err := e.Write(raw); err != nil {
		panic(err)
	}
	if err := e.Close(); err != nil {
		panic(err)
	}
}

// newStoredEncoder leaves zstd's own checksum out: SHA-256 covers the raw bytes.
func newStoredEncoder(w io.Writer) *zstd.Encoder {
	return newEncoder(w, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithWindowSize(maxWindow), zstd.WithEncoderCRC(false))
}

func newStreamEncoder(w io.Writer) *zstd.Encoder {
	return newEncoder(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(streamWindow), zstd.WithLowerEncoderMem(true))
}

// newEncoder works in the caller's goroutine: it needs no end where a transfer is given up. Only options out of their range
// are errors, and ours are constants.
func newEncoder(w io.Writer, options ...zstd.EOption) *zstd.Encoder {
	e, err := zstd.NewWriter(w, append(options, zstd.WithEncoderConcurrency(1))...)
	if err != nil {
		panic(err)
	}
	return e
}

// newDecoder works in the caller's goroutine as well, within maxWindow of memory. It reads no more of r than the frames
// need. A reader that is in memory already must not show it (*bytes.Buffer): the decoder would take the short way and
// decode all of it at once.
func newDecoder(r *meter) *zstd.Decoder {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		panic(err)
	}
	return d
}

// meter counts what is read and keeps the error it ended with, which decoders mix with their own.
type meter struct {
	from io.Reader
	n    int64
	// broken is the error that reading ended with, other than the end itself.
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

// atEnd tells whether a reader came to its end. Readers return io.EOF itself; one that is wrapped is the end of something
// else, such as a connection.
func atEnd(err error) bool {
	return err == io.EOF //nolint:errorlint // a wrapped one is not meant
}

// notEnd makes sure that nobody takes an error for the end.
func notEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %v", io.ErrUnexpectedEOF, err) //nolint:errorlint // the one in it must not be found
	}
	return err
}
