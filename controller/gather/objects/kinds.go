package objects

import (
	"regexp"
	"slices"
	"strings"
)

// kinds are the wanted kinds, to look for in text that cannot be parsed.
type kinds struct {
	words []string
	// asValue matches a wanted kind, or the kind of a list of it, as the value of the key kind. Only quotes, brackets,
	// anchors and tags may be between them.
	asValue *regexp.Regexp
}

func newKinds(wants []Want) kinds {
	var k kinds
	var quoted []string
	for _, w := range wants {
		k.words = append(k.words, w.Kind)
		quoted = append(quoted, regexp.QuoteMeta(w.Kind))
	}
	k.asValue = regexp.MustCompile(`kind["'\s]*:(?:["'\s\[{>|-]|[&!]\S*\s)*(?:` + strings.Join(quoted, "|") + `)(?:List)?(?:\W|$)`)
	return k
}

// hasKind reports whether the kind is wanted.
func (k kinds) hasKind(kind string) bool { return slices.Contains(k.words, kind) }

// areNamedIn reports whether the text looks like an object of a wanted kind. It decides whether text that cannot be
// parsed is an error.
func (k kinds) areNamedIn(text []byte) bool { return len(k.words) > 0 && k.asValue.Match(text) }
