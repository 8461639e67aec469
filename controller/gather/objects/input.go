package objects

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"unicode/utf16"
	"unicode/utf8"
)

// maxFile is the largest file that is looked into.
const maxFile = 1 << 30

// errTooLarge is a file beyond maxFile.
var errTooLarge = errors.New("the file is too large")

var (
	byteOrderMark = []byte("\ufeff")
	markedLine    = []byte("\n\ufeff")
)

// buffer holds one file at a time and is used again for the next.
type buffer struct{ bytes []byte }

// load reads all of a file, in UTF-8 and with line feeds alone. What it returns is valid until the next call.
func (b *buffer) load(file io.Reader, size int64) ([]byte, error) {
	if size > maxFile {
		return nil, errTooLarge
	}
	// ReadFrom wants room to see the end of the file.
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
	return dropMarks(unifyLineBreaks(toUTF8(b.bytes))), nil
}

// sizeOf is the size that a file says it has; 0 for what is no regular file.
func sizeOf(info fs.FileInfo) int64 {
	if info.Mode().IsRegular() {
		return info.Size()
	}
	return 0
}

// toUTF8 turns UTF-16 with a byte order mark, as PowerShell writes it, into UTF-8, and takes the mark off.
func toUTF8(text []byte) []byte {
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}):
		return fromUTF16(text[2:], binary.LittleEndian)
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		return fromUTF16(text[2:], binary.BigEndian)
	}
	return bytes.TrimPrefix(text, byteOrderMark)
}

// dropMarks takes off the byte order marks that stay at the beginning of a line when files are put together.
func dropMarks(text []byte) []byte {
	if !bytes.Contains(text, markedLine) {
		return text
	}
	return bytes.ReplaceAll(text, markedLine, newline)
}

func fromUTF16(text []byte, order binary.ByteOrder) []byte {
	out := make([]byte, 0, len(text)/2)
	for ; len(text) >= 2; text = text[2:] {
		r := rune(order.Uint16(text))
		if utf16.IsSurrogate(r) && len(text) >= 4 {
			if pair := utf16.DecodeRune(r, rune(order.Uint16(text[2:]))); pair != utf8.RuneError {
				r, text = pair, text[2:]
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// unifyLineBreaks turns CR LF, and CR alone, into LF, in place. YAML takes them for the same, and neither can stand
// inside a JSON string.
func unifyLineBreaks(text []byte) []byte {
	to := bytes.IndexByte(text, '\r')
	if to < 0 {
		return text
	}
	for from := to; from < len(text); {
		text[to] = '\n'
		to++
		if from++; from < len(text) && text[from] == '\n' {
			from++
		}
		n := bytes.IndexByte(text[from:], '\r')
		if n < 0 {
			n = len(text) - from
		}
		copy(text[to:], text[from:from+n])
		from, to = from+n, to+n
	}
	return text[:to]
}
