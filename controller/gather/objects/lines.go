package objects

import (
	"bytes"
	"iter"
	"strings"
)

// line is one line of a block of YAML.
type line struct {
	// start is the offset of the line.
	start, indent int
	// text is the line without its indentation.
	text []byte
}

// linesUpTo yields the lines from the offset at (the start of a line) that are indented by col or less, without blank
// lines and comments.
func linesUpTo(text []byte, at, col int) iter.Seq[line] {
	return func(yield func(line) bool) {
		for at < len(text) {
			end := lineEnd(text, at)
			if l, ok := readShallowLine(text[at:end], col); ok {
				l.start = at
				if !yield(l) {
					return
				}
			}
			at = end + 1
		}
	}
}

// readShallowLine reads a line that is indented by col or less and is neither blank nor a comment.
func readShallowLine(text []byte, col int) (line, bool) {
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
	// value is the text behind the colon, without blanks and comment.
	value []byte
	// from and to are the offsets of the lines below the key that belong to it.
	from, to int
}

// visitEntries calls visit for each key of the block mapping whose first key is at the offset first. It reports false at the
// first line, at the column of the keys or left of it, that is not a plain key and its value: only a parser can read such a
// mapping. Deeper lines are not looked at.
func visitEntries(text []byte, first int, visit func(entry)) bool {
	col := columnOf(text, first)
	end := lineEnd(text, first)
	open, ok := readEntry(text[first:end])
	if !ok {
		return false
	}
	open.from = min(end+1, len(text))
	for l := range linesUpTo(text, open.from, col) {
		if l.indent == col && len(open.value) == 0 && isDash(l.text) {
			continue
		}
		next, ok := readEntry(l.text)
		if !ok || l.indent < col {
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

// columnOf returns how far an offset is from the start of its line.
func columnOf(text []byte, at int) int { return at - 1 - bytes.LastIndexByte(text[:at], '\n') }

// isDash reports whether the line begins an item of a block sequence.
func isDash(text []byte) bool { return beginsWithMarker(text, "-") }

// readEntry reads a key without quotes and the value on its line.
func readEntry(text []byte) (entry, bool) {
	key, value, ok := bytes.Cut(text, []byte(":"))
	if !ok || !isPlainWord(key) || len(value) > 0 && !isBlank(value[0]) {
		return entry{}, false
	}
	value, _, _ = bytes.Cut(value, []byte(" #"))
	return entry{key: key, value: bytes.TrimSpace(value)}, true
}

// scalarValue returns the value of the entry if it is one word, in quotes or not. It is empty if only a parser can read it.
func (e entry) scalarValue() string {
	value := e.value
	if n := len(value); n > 1 && value[0] == value[n-1] && (value[0] == '"' || value[0] == '\'') {
		value = value[1 : n-1]
	}
	if !isPlainWord(value) || strings.EqualFold(string(e.value), "null") {
		return ""
	}
	return string(value)
}

// isPlainWord reports whether the text has only characters that mean nothing in YAML.
func isPlainWord(text []byte) bool {
	for _, c := range text {
		if !isLetter(c) && c != '.' && c != '/' && c != '-' {
			return false
		}
	}
	return len(text) > 0
}

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// blockList is a list of YAML whose items have a line with a dash each.
type blockList struct {
	segment
	// from and to are the offsets of the items in the text.
	from, to int
}

// readHead reads the head of a block mapping. The list is empty if the items are not a block.
func readHead(s segment) (h head, list blockList) {
	if s.isEmpty() {
		return head{}, blockList{}
	}
	items := 0
	h.isRead = visitEntries(s.text, s.start, func(e entry) {
		switch string(e.key) {
		case "kind":
			h.kind.addValue(e.scalarValue())
		case "apiVersion":
			h.apiVersion.addValue(e.scalarValue())
		case "metadata":
			h.hasMetadata = true
			h.lookAtMetadata(s.text[e.from:e.to], e)
		case "items":
			items++
			list = newBlockList(s, e)
			h.hasItems = h.hasItems || !e.isEmptyIn(s.text)
		}
	})
	switch {
	case !h.isRead:
		return head{}, blockList{}
	case items > 1:
		return h, blockList{}
	}
	return h, list
}

// isEmptyIn reports whether the entry of a list has no items.
func (e entry) isEmptyIn(text []byte) bool {
	return string(e.value) == "[]" || len(e.value) == 0 && contentStart(text[:e.to], e.from) == e.to
}

// newBlockList returns the items of the entry, if they are a block.
func newBlockList(s segment, e entry) blockList {
	first := contentStart(s.text[:e.to], e.from)
	if len(e.value) > 0 || !isDash(s.text[first:e.to]) {
		return blockList{}
	}
	return blockList{s, first - columnOf(s.text, first), e.to}
}

// lookAtMetadata reads the name and the namespace.
func (h *head) lookAtMetadata(body []byte, e entry) {
	h.name, h.namespace = field{}, field{}
	first := contentStart(body, 0)
	if len(e.value) > 0 || first == len(body) {
		return
	}
	isRead := visitEntries(body, first, func(e entry) {
		switch string(e.key) {
		case "name":
			h.name.addValue(e.scalarValue())
		case "namespace":
			h.namespace.addValue(e.scalarValue())
		}
	})
	if !isRead {
		h.name, h.namespace = field{}, field{}
	}
}

// yieldItems yields the items, and false in place of the rest if a line neither begins an item nor belongs to one.
func (b blockList) yieldItems() iter.Seq2[segment, bool] {
	return func(yield func(segment, bool) bool) {
		text := b.text[:b.to]
		col := contentStart(text, b.from) - b.from
		at, number := b.from, b.line+bytes.Count(text[:b.from], newline)
		for l := range linesUpTo(text, lineEnd(text, contentStart(text, at))+1, col) {
			if l.indent < col || !isDash(l.text) {
				yield(segment{}, false)
				return
			}
			if !yield(newItem(text[at:l.start], col, number), true) {
				return
			}
			number += bytes.Count(text[at:l.start], newline)
			at = l.start
		}
		yield(newItem(text[at:], col, number), true)
	}
}

// newItem returns the item whose dash is at the offset dash.
func newItem(text []byte, dash, line int) segment {
	return segment{text: text, line: line, start: contentStart(text, dash+1), place: line}
}
