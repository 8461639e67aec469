package objects

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
)

// list is the text of a list, in parts that are parsed one by one: an item may be broken, and all of them together may
// be large.
type list struct {
	// frame is the text without the items.
	frame []byte
	items []segment
}

// splitList returns the items of a text that looks like a list: of JSON, or of YAML whose items have a line with a dash
// each. Whether the parts are what they look like is for a parser to say.
func splitList(s segment) (list, bool) {
	if s.isEmpty() {
		return list{}, false
	}
	if s.text[s.start] == '{' {
		_, items, err := scanJSON(s)
		return items, err == nil && items.frame != nil
	}
	return splitBlockList(s)
}

var (
	itemsKey = regexp.MustCompile(`^items:[ \t]*(?:#|$)`)
	dash     = regexp.MustCompile(`^-(?:[ \t]|$)`)
)

// splitBlockList splits at the lines that begin with a dash at the column of the first one below the key items.
func splitBlockList(s segment) (list, bool) {
	const beforeItems, inItems, afterItems = "before", "in", "after"
	col, itemCol, state := columnOf(s.text, s.start), -1, beforeItems
	var begins []int
	end := len(s.text)
	for at := s.start - col; at < len(s.text); at = lineEnd(s.text, at) + 1 {
		line := s.text[max(at, s.start):lineEnd(s.text, at)]
		content := bytes.TrimLeft(line, " ")
		indent := len(line) - len(content)
		if at < s.start {
			indent = col
		}
		isKey := indent == col && itemsKey.Match(content)
		switch {
		case len(bytes.TrimSpace(content)) == 0 || content[0] == '#':
		case indent < col || isKey && state != beforeItems:
			return list{}, false
		case isKey:
			state = inItems
		case state == inItems && dash.Match(content) && (indent == itemCol || itemCol < 0):
			itemCol, begins = indent, append(begins, at)
		case state == inItems && indent <= itemCol && indent == col:
			state, end = afterItems, at
		case state == inItems && (itemCol < 0 || indent <= itemCol):
			return list{}, false
		}
	}
	if len(begins) == 0 {
		return list{}, false
	}
	return s.cutItems(begins, end, itemCol), true
}

// cutItems returns the list whose items begin at these offsets, with a dash each at the column.
func (s segment) cutItems(begins []int, end, col int) list {
	out := list{frame: slices.Concat(blankedUpTo(s.text[:begins[0]], s.start), s.text[end:])}
	line := s.line + bytes.Count(s.text[:begins[0]], newline)
	for i, from := range begins {
		text := s.text[from:end]
		if i+1 < len(begins) {
			text = s.text[from:begins[i+1]]
		}
		out.items = append(out.items, segment{text: text, line: line, start: contentStart(text, col+1), place: line})
		line += bytes.Count(text, newline)
	}
	return out
}

// columnOf returns how far an offset is from the start of its line.
func columnOf(text []byte, at int) int { return at - 1 - bytes.LastIndexByte(text[:at], '\n') }

// jsonScanner finds the parts of a JSON object at the beginning of a segment.
type jsonScanner struct {
	segment
	*json.Decoder
	// line is the line of the offset counted.
	line, counted int
	skipped       json.RawMessage
}

// scanJSON returns the offset behind the JSON object that the segment begins with, and its items if it may be a list.
func scanJSON(s segment) (end int, items list, err error) {
	d := jsonScanner{segment: s, Decoder: json.NewDecoder(bytes.NewReader(s.text[s.start:])), line: s.place, counted: s.start}
	var open, closed int
	_, err = d.Token()
	for err == nil && d.More() {
		var key json.Token
		if key, err = d.Token(); err != nil {
			break
		}
		if key != "items" || open > 0 || s.text[d.next()] != '[' {
			err = d.Decode(&d.skipped)
			continue
		}
		_, err = d.Token()
		for open = d.offset(); err == nil && d.More(); {
			var item segment
			item, err = d.scanItem()
			items.items = append(items.items, item)
		}
		if closed = d.offset(); err == nil {
			_, err = d.Token()
		}
	}
	if err == nil {
		_, err = d.Token()
	}
	if open > 0 && err == nil {
		items.frame = slices.Concat(s.text[s.start:open], s.text[closed:d.offset()])
	}
	return d.offset(), items, err
}

// offset returns how far the text is read.
func (d *jsonScanner) offset() int { return d.start + int(d.InputOffset()) }

// next returns the offset of the next value, or the last one of the text.
func (d *jsonScanner) next() int {
	at := d.offset()
	for at < len(d.text)-1 && (isBlank(d.text[at]) || d.text[at] == ':' || d.text[at] == ',') {
		at++
	}
	return at
}

// scanItem passes over an item.
func (d *jsonScanner) scanItem() (segment, error) {
	at := d.next()
	d.line += bytes.Count(d.text[d.counted:at], newline)
	d.counted = at
	err := d.Decode(&d.skipped)
	return segment{text: d.text[at:max(at, d.offset())], line: d.line, place: d.line}, err
}
