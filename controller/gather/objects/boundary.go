package objects

import "bytes"

// isUnfinished tells whether a block of YAML ends inside a quoted scalar or a flow collection. These may go on at any
// column, so that lines which look like the next key or item belong to them. Text in which nothing of the kind goes
// over its line is never unfinished; in block scalars the answer may be wrong.
func isUnfinished(text []byte) bool {
	depth := 0
	for at := 0; ; at++ {
		n := bytes.IndexAny(text[at:], `"'[]{}`)
		if n < 0 {
			return depth > 0
		}
		at += n
		switch text[at] {
		case ']', '}':
			depth = max(depth-1, 0)
		case '[', '{':
			if depth > 0 || beginsValue(text, at) {
				depth++
			}
		default:
			if !beginsValue(text, at) {
				continue
			}
			end, ok := endOfQuoted(text, at)
			if !ok {
				return true
			}
			at = end - 1
		}
	}
}

// maxProperty is how long an anchor or a tag can be; looking further back would make long lines slow.
const maxProperty = 256

// beginsValue tells whether a key or a value can begin at the offset: on a new line, behind an indicator, or behind
// an anchor or a tag.
func beginsValue(text []byte, at int) bool {
	end := at
	for end > 0 && (text[end-1] == ' ' || text[end-1] == '\t') {
		end--
	}
	if end == 0 {
		return true
	}
	switch text[end-1] {
	case '\n', ':', '-', '?', ',', '[', '{':
		return true
	}
	word := text[max(0, end-maxProperty):end]
	word = word[bytes.LastIndexAny(word, " \t\n,[{")+1:]
	return word[0] == '&' || word[0] == '!'
}

// endOfQuoted passes over the quoted scalar that begins at the offset, over as many lines as it takes.
func endOfQuoted(text []byte, at int) (end int, ok bool) {
	if text[at] == '"' {
		return endOfJSONString(text, at)
	}
	for from := at + 1; ; {
		n := bytes.IndexByte(text[from:], '\'')
		if n < 0 {
			return len(text), false
		}
		if from += n + 1; from == len(text) || text[from] != '\'' {
			return from, true
		}
		from++
	}
}
