package objects

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"unicode/utf16"
)

// maxFile is the size of the largest file that is read.
const maxFile = 1 << 30

// errTooLarge is the error for a file larger than maxFile.
var errTooLarge = errors.New("the file is too large")

var (
	byteOrderMark = []byte("\ufeff")
	markedLine    = []byte("\n\ufeff")
)

// buffer holds one file at a time. It is reused for the next.
type buffer struct{ bytes []byte }

// loadText returns a file in UTF-8 with line feeds as line breaks. The result is valid until the next call.
func (b *buffer) loadText(file io.Reader, size int64) ([]byte, error) {
	if size > maxFile {
		return nil, errTooLarge
	}
	// ReadFrom needs free space to see the end of the file.
	if need := int(size) + bytes.MinRead; cap(b.bytes) < need {
		b.bytes = make([]byte, 0, need)
	}
	out := bytes.NewBuffer(b.bytes[:0])
	n, err := out.ReadFrom(io.LimitReader(file, maxFile+1))
	b.bytes = out.Bytes()
	if err != nil {
		return nil, err
	}
	if n > maxFile {
		return nil, errTooLarge
	}
	return dropByteOrderMarks(unifyLineBreaks(convertToUTF8(b.bytes))), nil
}

// sizeOf returns the size of a regular file, and 0 for anything else.
func sizeOf(info fs.FileInfo) int64 {
	if info.Mode().IsRegular() {
		return info.Size()
	}
	return 0
}

// convertToUTF8 converts UTF-16 with a byte order mark, as PowerShell writes it, to UTF-8. It removes the mark.
func convertToUTF8(text []byte) []byte {
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}):
		return decodeUTF16(text[2:], binary.LittleEndian)
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		return decodeUTF16(text[2:], binary.BigEndian)
	}
	return bytes.TrimPrefix(text, byteOrderMark)
}

// dropByteOrderMarks removes byte order marks at the beginning of lines, which remain when files are concatenated.
func dropByteOrderMarks(text []byte) []byte {
	if !bytes.Contains(text, markedLine) {
		return text
	}
	return bytes.ReplaceAll(text, markedLine, newline)
}

func decodeUTF16(text []byte, order binary.ByteOrder) []byte {
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = order.Uint16(text[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

// unifyLineBreaks replaces CR LF and CR with LF. They are equal in YAML, and none of them is allowed inside a JSON
// string.
func unifyLineBreaks(text []byte) []byte {
	if bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), newline), []byte{'\r'}, newline)
}
