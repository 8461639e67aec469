package cli

import (
	"strings"
	"unicode/utf8"
)

// Columns is how wide texts for people are.
const Columns = 80

// Wrap is WrapTo with Columns.
func Wrap(text, indent string) string { return WrapTo(text, indent, Columns) }

// WrapTo breaks a text into lines of at most so many columns, between words; a word that is longer has a line of its
// own, so that commands and paths can be copied: text.WrapSoft of go-pretty breaks them. Every line but the first begins
// with the indentation. Control characters are escaped.
func WrapTo(text, indent string, columns int) string {
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	line, lines := lead, []string(nil)
	for _, word := range strings.Fields(Plain(text)) {
		switch {
		case strings.TrimSpace(line) == "":
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns:
			lines = append(lines, line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	return strings.Join(append(lines, line), "\n")
}
