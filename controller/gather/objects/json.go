package objects

import (
	"bytes"
	"iter"
)

// maxJSONDepth is how deep containers may stand in each other; parsers refuse more.
const maxJSONDepth = 10000

// endOfJSON finds the end of the JSON value that begins at the offset at, or reports that it is not JSON. It keeps to
// the grammar of structure and strings, so that no brace is miscounted; what numbers and escapes mean is for the parser.
func endOfJSON(text []byte, at int) (end int, ok bool) {
	var open []byte
	for {
		var opened byte
		if at, opened, ok = beginJSONValue(text, at); !ok {
			return at, false
		}
		if opened != 0 {
			if len(open) == maxJSONDepth {
				return at, false
			}
			if open = append(open, opened); opened == '{' {
				if at, ok = endOfJSONKey(text, at); !ok {
					return at, false
				}
			}
			continue
		}
		if at, open, ok = closeJSONValues(text, at, open); !ok || len(open) == 0 {
			return at, ok
		}
	}
}

// beginJSONValue passes over a scalar or an empty container, or steps into one that is not empty.
func beginJSONValue(text []byte, at int) (end int, opened byte, ok bool) {
	at = jsonSpace(text, at)
	if at == len(text) {
		return at, 0, false
	}
	switch c := text[at]; c {
	case '{', '[':
		at = jsonSpace(text, at+1)
		if at < len(text) && text[at] == c+2 {
			return at + 1, 0, true
		}
		return at, c, true
	case '"':
		at, ok = endOfJSONString(text, at)
		return at, 0, ok
	}
	at, ok = endOfJSONWord(text, at)
	return at, 0, ok
}

// closeJSONValues follows a value: it closes the containers that end here and passes over the comma, and the key, that
// lead to the next value.
func closeJSONValues(text []byte, at int, open []byte) (end int, left []byte, ok bool) {
	for len(open) > 0 {
		at = jsonSpace(text, at)
		if at == len(text) {
			return at, open, false
		}
		container := open[len(open)-1]
		switch {
		case text[at] == container+2: // } and ] stand two behind { and [ in ASCII
			at, open = at+1, open[:len(open)-1]
		case text[at] == ',' && container == '{':
			at, ok = endOfJSONKey(text, at+1)
			return at, open, ok
		case text[at] == ',':
			return at + 1, open, true
		default:
			return at, open, false
		}
	}
	return at, open, true
}

// endOfJSONKey passes over a key and its colon.
func endOfJSONKey(text []byte, at int) (end int, ok bool) {
	at = jsonSpace(text, at)
	if at == len(text) || text[at] != '"' {
		return at, false
	}
	if at, ok = endOfJSONString(text, at); !ok {
		return at, false
	}
	if at = jsonSpace(text, at); at == len(text) || text[at] != ':' {
		return at, false
	}
	return at + 1, true
}

// endOfJSONString passes over the string that begins at the quote at.
func endOfJSONString(text []byte, at int) (end int, ok bool) {
	for from := at + 1; ; {
		n := bytes.IndexByte(text[from:], '"')
		if n < 0 {
			return len(text), false
		}
		quote := from + n
		escapes := 0
		for text[quote-1-escapes] == '\\' {
			escapes++
		}
		if from = quote + 1; escapes%2 == 0 {
			return from, true
		}
	}
}

// endOfJSONWord passes over a number, true, false or null.
func endOfJSONWord(text []byte, at int) (end int, ok bool) {
	for end = at; end < len(text) && isWordByte(text[end]); end++ {
	}
	switch c := text[at]; {
	case c == '-' || '0' <= c && c <= '9':
		return end, true
	}
	switch string(text[at:end]) {
	case "true", "false", "null":
		return end, true
	}
	return at, false
}

func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'E'
}

func jsonSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t') {
		at++
	}
	return at
}

// readJSONObject shows every entry of the JSON object that begins at the offset at: the key as it is written, and
// where its value stands.
func readJSONObject(text []byte, at int, visit func(key []byte, from, to int)) (end int, ok bool) {
	at = jsonSpace(text, at+1)
	if at < len(text) && text[at] == '}' {
		return at + 1, true
	}
	for {
		keyFrom := jsonSpace(text, at)
		from, ok := endOfJSONKey(text, keyFrom)
		if !ok {
			return from, false
		}
		keyTo, _ := endOfJSONString(text, keyFrom)
		from = jsonSpace(text, from)
		to, ok := endOfJSON(text, from)
		if !ok {
			return to, false
		}
		visit(text[keyFrom:keyTo], from, to)
		if at = jsonSpace(text, to); at == len(text) || text[at] != ',' && text[at] != '}' {
			return at, false
		}
		if at++; text[at-1] == '}' {
			return at, true
		}
	}
}

// jsonText reads a JSON string that has nothing to unescape.
func jsonText(token []byte) (text []byte, ok bool) {
	if len(token) < 2 || token[0] != '"' || bytes.IndexByte(token, '\\') >= 0 {
		return nil, false
	}
	return token[1 : len(token)-1], true
}

// lookAtJSON reads the head of an object that is written as JSON, and finds its end.
func lookAtJSON(s segment) (h head, end int, ok bool) {
	h.sure = true
	end, ok = readJSONObject(s.text, s.start, func(key []byte, from, to int) {
		name, plain := jsonText(key)
		if !plain {
			h.sure = false
		}
		switch string(name) {
		case "kind":
			h.kind.add(jsonText(s.text[from:to]))
		case "apiVersion":
			h.apiVersion.add(jsonText(s.text[from:to]))
		case "metadata":
			h.lookAtJSONMetadata(s.text[:to], from)
		case "items":
			h.lookAtJSONItems(s.text[:to], from)
		}
	})
	return h, end, ok
}

// lookAtJSONMetadata reads the name and the namespace.
func (h *head) lookAtJSONMetadata(text []byte, from int) {
	var name, namespace guess
	sure := text[from] == '{'
	if sure {
		readJSONObject(text, from, func(key []byte, from, to int) {
			inner, plain := jsonText(key)
			sure = sure && plain
			switch string(inner) {
			case "name":
				name.add(jsonText(text[from:to]))
			case "namespace":
				namespace.add(jsonText(text[from:to]))
			}
		})
	}
	h.name.merge(name, sure)
	h.namespace.merge(namespace, sure)
}

// lookAtJSONItems notes where the items stand; text ends with them.
func (h *head) lookAtJSONItems(text []byte, from int) {
	found := items{form: otherItems, from: from, to: len(text)}
	switch {
	case h.items.form != noItems:
	case string(text[from:]) == "null":
		return
	case text[from] == '[':
		found.form = jsonItems
	}
	h.items = found
}

// jsonItemsOf yields the items of a JSON array that is known to be well formed.
func jsonItemsOf(s segment, at items) iter.Seq2[segment, bool] {
	return func(yield func(segment, bool) bool) {
		line, counted := s.line, 0
		for from := jsonSpace(s.text, at.from+1); from < at.to && s.text[from] != ']'; {
			end, ok := endOfJSON(s.text, from)
			if !ok {
				return
			}
			line, counted = line+bytes.Count(s.text[counted:from], newline), from
			if !yield(newSegment(s.text[from:end], line), true) {
				return
			}
			if from = jsonSpace(s.text, end); from < at.to && s.text[from] == ',' {
				from = jsonSpace(s.text, from+1)
			}
		}
	}
}
