package objects

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// kinds are the wanted kinds, as words to look for in text that is not parsed.
type kinds struct {
	words [][]byte
	// asValue matches a wanted kind, or the kind of a list of it, as the value of the key kind. Only quotes, brackets,
	// anchors and tags may be between them.
	asValue *regexp.Regexp
}

func newKinds(wants []Want) kinds {
	var k kinds
	var quoted []string
	for _, w := range wants {
		k.words = append(k.words, []byte(w.Kind))
		quoted = append(quoted, regexp.QuoteMeta(w.Kind))
	}
	k.asValue = regexp.MustCompile(`kind["'\s]*:(?:["'\s\[{>|-]|[&!]\S*\s)*(?:` + strings.Join(quoted, "|") + `)(?:List)?(?:\W|$)`)
	return k
}

// hasKind reports whether the kind is wanted.
func (k kinds) hasKind(kind string) bool {
	return slices.ContainsFunc(k.words, func(word []byte) bool { return string(word) == kind })
}

// resemblesKind reports whether the kind is wanted, in upper or lower case.
func (k kinds) resemblesKind(kind string) bool {
	return slices.ContainsFunc(k.words, func(word []byte) bool { return strings.EqualFold(string(word), kind) })
}

// mayBeIn reports whether the text can hold an object of a wanted kind, however it is written: the kind occurs as a
// word, unless it is escaped or has a tag.
func (k kinds) mayBeIn(text []byte) bool {
	if escapedLetter.Match(text) || bytes.Contains(text, []byte("!!")) || bytes.Contains(text, []byte("!<")) {
		return true
	}
	return slices.ContainsFunc(k.words, func(word []byte) bool { return bytes.Contains(text, word) })
}

// areAllNamed reports whether the text looks like an object of a wanted kind. It decides whether text that cannot be
// parsed is a finding.
func (k kinds) areAllNamed(text []byte) bool { return len(k.words) > 0 && k.asValue.Match(text) }

// escapedLetter is an escape, in double quotes, that a word can be spelled with, or an escaped line break inside it.
var escapedLetter = regexp.MustCompile(`\\(?:[\n\x{85}\x{2028}\x{2029}]|x[3-7]|u003[0-9]|u00[4-7]|U0000003[0-9]|U000000[4-7])`)
