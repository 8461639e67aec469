package objects

import (
	"bytes"
	"iter"
)

// segment is a stretch of a file that holds one document, or one item of a list.
type segment struct {
	text []byte
	// line is the line of the file on which text begins, counted from 1.
	line int
	// start is the offset in text of the first byte that is neither blank nor a comment nor the dash of an item;
	// len(text) if there is none.
	start int
	// place is the line that people are shown: of the dash of an item, of the content of anything else.
	place int
}

// newSegment finds where the content of text begins.
func newSegment(text []byte, line int) segment {
	start := contentStart(text, 0)
	return segment{text: text, line: line, start: start, place: line + bytes.Count(text[:start], newline)}
}

// isEmpty tells whether the segment holds nothing but blanks and comments.
func (s segment) isEmpty() bool { return s.start == len(s.text) }

// upTo is the segment without what stands behind the offset.
func (s segment) upTo(offset int) segment {
	s.text = s.text[:offset]
	return s
}

// after is the rest of the segment from an offset on.
func (s segment) after(offset int) segment { return newSegment(s.text[offset:], s.lineAt(offset)) }

// lineAt is the line of the file that an offset stands on.
func (s segment) lineAt(offset int) int { return s.line + bytes.Count(s.text[:offset], newline) }

var newline = []byte{'\n'}

// contentStart skips blanks and comments. The byte before at must be a blank or a line break, if there is one.
func contentStart(text []byte, at int) int {
	for at < len(text) {
		switch text[at] {
		case ' ', '\t', '\n':
			at++
		case '#':
			at = lineEnd(text, at)
		default:
			return at
		}
	}
	return at
}

// lineEnd is the offset of the line break that ends the line of at, or the end of the text.
func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

// documents yields the documents of a file that are not empty. A line that is exactly three dashes, or three dashes
// and a blank and anything, begins a document; what follows the dashes on their line belongs to it. A line of three
// dots ends one.
func documents(text []byte) iter.Seq[segment] {
	return func(yield func(segment) bool) {
		line := 1
		for part := range cutAtMarkers(text, "---") {
			for piece := range cutAtMarkers(part, "...") {
				s := newSegment(piece, line)
				if !s.isEmpty() && !yield(s) {
					return
				}
				line += bytes.Count(piece, newline)
			}
		}
	}
}

// cutAtMarkers yields what stands between the markers that begin a line; no line break is lost.
func cutAtMarkers(text []byte, marker string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		pattern := []byte("\n" + marker)
		if isMarker(text, marker) {
			text = text[len(marker):]
		}
		for from := 0; ; {
			n := bytes.Index(text[from:], pattern)
			if n < 0 {
				yield(text)
				return
			}
			at := from + n + 1
			if !isMarker(text[at:], marker) {
				from = at
				continue
			}
			if !yield(text[:at]) {
				return
			}
			text, from = text[at+len(marker):], 0
		}
	}
}

// isMarker tells whether text begins with the marker as a word of its own.
func isMarker(text []byte, marker string) bool {
	if len(text) < len(marker) || string(text[:len(marker)]) != marker {
		return false
	}
	return len(text) == len(marker) || isBlank(text[len(marker)])
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }
