package objects

import (
	"bytes"
	"iter"
)

// line is one line of a block of YAML, without its indentation.
type line struct {
	// start is the offset of the first byte of the line, indentation included.
	start  int
	indent int
	text   []byte
}

// linesUpTo yields the lines from the offset at (the start of a line) on that are indented by col or less, and the
// last line's end. Blank lines and comments are left out.
func linesUpTo(text []byte, at, col int) iter.Seq[line] {
	return func(yield func(line) bool) {
		for at < len(text) {
			end := lineEnd(text, at)
			if l, ok := shallow(text[at:end], col); ok {
				l.start = at
				if !yield(l) {
					return
				}
			}
			at = end + 1
		}
	}
}

// shallow reads a line that is indented by col or less and holds something.
func shallow(text []byte, col int) (line, bool) {
	indent := 0
	for indent < len(text) && text[indent] == ' ' {
		if indent++; indent > col {
			return line{}, false
		}
	}
	text = text[indent:]
	if len(text) == 0 || text[0] == '#' || text[0] == '\t' && len(bytes.TrimLeft(text, " \t")) == 0 {
		return line{}, false
	}
	return line{indent: indent, text: text}, true
}

// entry is one key of a block mapping.
type entry struct {
	key []byte
	// value is what stands behind the colon on the line of the key.
	value []byte
	// from and to are the offsets of the lines below it that belong to it.
	from, to int
}

// readBlockMapping shows every entry of the block mapping whose first key stands at the offset first. It reports false
// as soon as it meets anything whose meaning it cannot tell for sure from the line alone.
func readBlockMapping(text []byte, first int, visit func(entry)) bool {
	lineStart := bytes.LastIndexByte(text[:first], '\n') + 1
	col := first - lineStart
	end := lineEnd(text, first)
	open, ok := readEntry(text[first:end])
	if !ok {
		return false
	}
	open.from = min(end+1, len(text))
	for l := range linesUpTo(text, open.from, col) {
		if l.indent < col {
			return false
		}
		if isDash(l.text) {
			if isValueBelow(open.value) {
				continue
			}
			return false
		}
		next, ok := readEntry(l.text)
		if !ok {
			return false
		}
		open.to = l.start
		visit(open)
		open, open.from = next, min(l.start+l.indent+len(l.text)+1, len(text))
	}
	open.to = len(text)
	visit(open)
	return true
}

// isDash tells whether the line is an item of a block sequence.
func isDash(text []byte) bool { return isMarker(text, "-") }

// isValueBelow tells whether the value of an entry is on the lines below its key.
func isValueBelow(value []byte) bool { return len(value) == 0 || value[0] == '#' }

// readEntry reads a key and what follows its colon. Keys that a parser would have to unescape, resolve or merge are
// not read.
func readEntry(text []byte) (entry, bool) {
	key, rest, ok := readKey(text)
	if !ok || string(key) == "<<" {
		return entry{}, false
	}
	return entry{key: key, value: bytes.Trim(rest, " \t")}, true
}

func readKey(text []byte) (key, rest []byte, ok bool) {
	if isDash(text) {
		return nil, nil, false
	}
	switch text[0] {
	case '"', '\'':
		key, rest, ok = readQuoted(text)
		rest = bytes.TrimLeft(rest, " \t")
		if !ok || len(rest) == 0 || rest[0] != ':' {
			return nil, nil, false
		}
		return key, rest[1:], true
	case '?', '&', '*', '!', '{', '}', '[', ']', ',', '|', '>', '%', '@', '`', ':', '#', '\t':
		return nil, nil, false
	}
	return readPlainKey(text)
}

// readPlainKey reads a key without quotes: all up to a colon before a blank.
func readPlainKey(text []byte) (key, rest []byte, ok bool) {
	for from := 0; ; {
		n := bytes.IndexByte(text[from:], ':')
		if n < 0 {
			return nil, nil, false
		}
		at := from + n
		if at+1 == len(text) || isBlank(text[at+1]) {
			key = bytes.TrimRight(text[:at], " \t")
			return key, text[at+1:], !hasComment(key)
		}
		from = at + 1
	}
}

// hasComment tells whether a comment begins inside the text.
func hasComment(text []byte) bool { return commentStart(text) < len(text) }

// commentStart is the offset of the blank before the comment that ends a plain scalar, or the end of the text.
func commentStart(text []byte) int {
	for from := 0; ; {
		n := bytes.IndexByte(text[from:], '#')
		if n < 0 {
			return len(text)
		}
		at := from + n
		if at > 0 && isBlank(text[at-1]) {
			return at - 1
		}
		from = at + 1
	}
}

// readQuoted reads a quoted scalar that has nothing to unescape and ends on its line.
func readQuoted(text []byte) (inner, rest []byte, ok bool) {
	quote := text[0]
	n := bytes.IndexByte(text[1:], quote)
	if n < 0 {
		return nil, nil, false
	}
	inner, rest = text[1:n+1], text[n+2:]
	if quote == '"' && bytes.IndexByte(inner, '\\') >= 0 || len(rest) > 0 && rest[0] == quote {
		return nil, nil, false
	}
	return inner, rest, true
}

// scalar reads the value of an entry if it stands as plain or quoted text on the line of its key, and nowhere else.
func (e entry) scalar(text []byte) (value []byte, ok bool) {
	if contentStart(text[:e.to], e.from) < e.to {
		return nil, false
	}
	return readScalar(e.value)
}

// readScalar reads a value that stands on the line of its key as plain or quoted text.
func readScalar(value []byte) (text []byte, ok bool) {
	if isValueBelow(value) {
		return nil, false
	}
	switch value[0] {
	case '"', '\'':
		inner, rest, ok := readQuoted(value)
		rest = bytes.TrimLeft(rest, " \t")
		return inner, ok && (len(rest) == 0 || rest[0] == '#')
	case '&', '*', '!', '{', '}', '[', ']', ',', '|', '>', '%', '@', '`', '?', '-', ':':
		return nil, false
	}
	text = bytes.TrimRight(value[:commentStart(value)], " \t")
	switch string(text) {
	case "~", "null", "Null", "NULL":
		return nil, false
	}
	return text, true
}

// lookAtBlock reads the head of an object that is a block mapping.
func lookAtBlock(s segment) head {
	var h head
	h.sure = readBlockMapping(s.text, s.start, func(e entry) {
		switch string(e.key) {
		case "kind":
			h.kind.add(e.scalar(s.text))
		case "apiVersion":
			h.apiVersion.add(e.scalar(s.text))
		case "metadata":
			h.lookAtBlockMetadata(s.text, e)
		case "items":
			h.lookAtBlockItems(s.text, e)
		}
	})
	return h
}

// lookAtBlockMetadata reads the name and the namespace.
func (h *head) lookAtBlockMetadata(text []byte, e entry) {
	body := text[e.from:e.to]
	first := contentStart(body, 0)
	if first == len(body) && isValueBelow(e.value) {
		return
	}
	var name, namespace guess
	sure := isValueBelow(e.value) && !isUnfinished(body) && readBlockMapping(body, first, func(e entry) {
		switch string(e.key) {
		case "name":
			name.add(e.scalar(body))
		case "namespace":
			namespace.add(e.scalar(body))
		}
	})
	h.name.merge(name, sure)
	h.namespace.merge(namespace, sure)
}

// lookAtBlockItems notes where the items stand.
func (h *head) lookAtBlockItems(text []byte, e entry) {
	found := items{form: otherItems, from: e.from, to: e.to}
	first := contentStart(text[:e.to], e.from)
	switch {
	case h.items.form != noItems:
	case string(e.value) == "[]" || first == e.to && isValueBelow(e.value):
		return
	case isValueBelow(e.value) && isDash(text[first:e.to]):
		found.form = blockItems
	}
	h.items = found
}

// blockItemsOf yields the items of a block sequence, and false in place of one that does not stand as it should.
func blockItemsOf(s segment, at items) iter.Seq2[segment, bool] {
	return func(yield func(segment, bool) bool) {
		text := s.text[:at.to]
		first := contentStart(text, at.from)
		col := first - 1 - bytes.LastIndexByte(text[:first], '\n')
		begin, lineNumber := first-col, s.line+bytes.Count(text[:first-col], newline)
		for l := range linesUpTo(text, lineEnd(text, first)+1, col) {
			if l.indent < col || !isDash(l.text) {
				yield(segment{}, false)
				return
			}
			if !yield(itemSegment(text[begin:l.start], col, lineNumber), true) {
				return
			}
			lineNumber += bytes.Count(text[begin:l.start], newline)
			begin = l.start
		}
		yield(itemSegment(text[begin:], col, lineNumber), true)
	}
}

// itemSegment is the item whose dash stands at the offset dash.
func itemSegment(text []byte, dash, line int) segment {
	return segment{text: text, line: line, start: contentStart(text, dash+1), place: line}
}
