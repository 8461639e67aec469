package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// kind is what a frame holds.
type kind byte

const (
	// kindHello is the first frame of all, with the version of the protocol.
	kindHello kind = 'h'
	// kindWords begins a command: a JSON list of its words, without the program's name.
	kindWords kind = 'w'
	// kindStdin, kindStdout and kindStderr are bytes of a stream.
	kindStdin  kind = 'i'
	kindStdout kind = 'o'
	kindStderr kind = 'r'
	// kindEnd is the end of stdin.
	kindEnd kind = 'e'
	// kindStatus ends a command: its exit status in decimal.
	kindStatus kind = 's'
)

// hello is what the hello says.
const hello = "wmco-node session 1"

const (
	// headerSize is a kind and the length of what follows, most significant byte first.
	headerSize = 5
	// maxFrame is how many bytes may follow.
	maxFrame = 1 << 20
)

// ErrMalformed says that what came is no session.
var ErrMalformed = errors.New("not a session of the node program")

// frames reads frames. The bytes of one have to be read before the next.
type frames struct {
	from io.Reader
	left int
}

// next returns the kind of the next frame. The end between two frames is io.EOF, any other io.ErrUnexpectedEOF.
func (f *frames) next() (kind, error) {
	if f.left > 0 {
		if _, err := io.CopyN(io.Discard, f, int64(f.left)); err != nil {
			return 0, err
		}
	}
	var header [headerSize]byte
	if _, err := io.ReadFull(f.from, header[:]); err != nil {
		return 0, err
	}
	size := binary.BigEndian.Uint32(header[1:])
	if size > maxFrame {
		return 0, fmt.Errorf("%w: a frame of %d bytes", ErrMalformed, size)
	}
	f.left = int(size)
	return kind(header[0]), nil
}

// Read reads from the present frame, io.EOF at its end.
func (f *frames) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	n, err := f.from.Read(p[:min(len(p), f.left)])
	f.left -= n
	if errors.Is(err, io.EOF) {
		err = nil
		if f.left > 0 {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// all reads the rest of the present frame.
func (f *frames) all() ([]byte, error) {
	data := make([]byte, f.left)
	_, err := io.ReadFull(f, data)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

// send writes one frame in one piece.
func send(to io.Writer, k kind, data []byte) error {
	frame := make([]byte, headerSize, headerSize+len(data))
	frame[0] = byte(k)
	binary.BigEndian.PutUint32(frame[1:], uint32(len(data))) //nolint:gosec // callers keep to maxFrame
	_, err := to.Write(append(frame, data...))
	return err
}

// stream writes frames of one kind.
type stream struct {
	to   io.Writer
	kind kind
}

// Write implements io.Writer.
func (s stream) Write(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		piece := p[n:min(len(p), n+maxFrame)]
		if err := send(s.to, s.kind, piece); err != nil {
			return n, err
		}
		n += len(piece)
	}
	return n, nil
}
