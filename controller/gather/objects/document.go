package objects

import (
	"bytes"
	"iter"
)

// segment is a part of a file: one document, or one item of a list.
type segment struct {
	text []byte
	// line is the line of the file on which text begins, counted from 1.
	line int
	// start is the offset in text of the first byte that is not a blank, a comment or the dash of an item; len(text)
	// if there is none.
	start int
	// place is the line that findings show: of the dash of an item, or of the first content of anything else.
	place int
}

// newSegment returns the segment of text, which begins on the given line.
func newSegment(text []byte, line int) segment {
	start := contentStart(text, 0)
	return segment{text: text, line: line, start: start, place: line + bytes.Count(text[:start], newline)}
}

// isEmpty reports whether the segment holds only blanks and comments.
func (s segment) isEmpty() bool { return s.start == len(s.text) }

// upTo returns the segment up to an offset.
func (s segment) upTo(offset int) segment {
	s.text = s.text[:offset]
	return s
}

// segmentAfter returns the rest of the segment from an offset on.
func (s segment) segmentAfter(offset int) segment {
	return newSegment(s.text[offset:], s.line+bytes.Count(s.text[:offset], newline))
}

var newline = []byte{'\n'}

// contentStart returns the offset of the first byte that is not a blank or in a comment. The byte before at must be a
// blank or a line break, if there is one.
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

// lineEnd returns the offset of the line break that ends the line of at, or the end of the text.
func lineEnd(text []byte, at int) int {
	if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n
	}
	return len(text)
}

// splitDocuments yields the documents of a file that are not empty. A document begins at a line of three dashes, alone
// or followed by a blank and content, and ends at a line of three dots.
func splitDocuments(text []byte) iter.Seq[segment] {
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

// cutAtMarkers yields the text between the markers that begin a line. Every line break stays in the text.
func cutAtMarkers(text []byte, marker string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		pattern := []byte("\n" + marker)
		if beginsWithMarker(text, marker) {
			text = text[len(marker):]
		}
		for from := 0; ; {
			n := bytes.Index(text[from:], pattern)
			if n < 0 {
				yield(text)
				return
			}
			at := from + n + 1
			if !beginsWithMarker(text[at:], marker) {
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

// beginsWithMarker reports whether text begins with the marker as a separate word.
func beginsWithMarker(text []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(text, []byte(marker))
	return ok && (len(rest) == 0 || isBlank(rest[0]))
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }
