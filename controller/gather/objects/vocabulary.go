package objects

import (
	"bytes"
	"regexp"
	"slices"
)

// vocabulary is the wanted kinds as words to look for in text that is not understood.
type vocabulary [][]byte

func newVocabulary(wants []Want) vocabulary {
	var kinds vocabulary
	for _, w := range wants {
		kinds = append(kinds, []byte(w.Kind))
	}
	slices.SortFunc(kinds, bytes.Compare)
	return slices.CompactFunc(kinds, bytes.Equal)
}

// has tells whether the kind is wanted.
func (v vocabulary) has(kind string) bool {
	return slices.ContainsFunc(v, func(k []byte) bool { return string(k) == kind })
}

// mayName tells whether the text can hold an object of a wanted kind, however it is written: the kind has to be
// spelled out somewhere, unless it is escaped or tagged as something else than text.
func (v vocabulary) mayName(text []byte) bool {
	if escapedLetter.Match(text) || bytes.Contains(text, []byte("!!")) || bytes.Contains(text, []byte("!<")) {
		return true
	}
	return slices.ContainsFunc(v, func(kind []byte) bool { return bytes.Contains(text, kind) })
}

// escapedLetter is an escape, in double quotes, that a word can be spelled with, or an escaped line break inside it.
var escapedLetter = regexp.MustCompile(`\\(?:[\n\x{85}\x{2028}\x{2029}]|x[3-7]|u003[0-9]|u00[4-7]|U0000003[0-9]|U000000[4-7])`)

// names tells whether the text looks as if it held an object of a wanted kind: the word kind, a colon and the kind,
// with nothing but blanks, quotes, brackets, anchors and tags between them. It decides whether text that no parser
// understands is worth a finding.
func (v vocabulary) names(text []byte) bool {
	word := []byte("kind")
	for {
		n := bytes.Index(text, word)
		if n < 0 {
			return false
		}
		text = text[n+len(word):]
		if rest, ok := bytes.CutPrefix(bytes.TrimLeft(text, "\"' \t\n"), []byte(":")); ok && v.begins(valueOf(rest)) {
			return true
		}
	}
}

// valueOf passes over what may stand between a colon and a word.
func valueOf(text []byte) []byte {
	for {
		text = bytes.TrimLeft(text, "\"' \t\n[{->|")
		if len(text) == 0 || text[0] != '&' && text[0] != '!' {
			return text
		}
		n := bytes.IndexAny(text, " \t\n")
		if n < 0 {
			return nil
		}
		text = text[n:]
	}
}

// begins tells whether the text begins with a wanted kind, or the kind of a list of it, as a word of its own.
func (v vocabulary) begins(text []byte) bool {
	return slices.ContainsFunc(v, func(kind []byte) bool {
		rest, ok := bytes.CutPrefix(text, kind)
		rest = bytes.TrimPrefix(rest, []byte("List"))
		return ok && (len(rest) == 0 || !isLetter(rest[0]))
	})
}

func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}
