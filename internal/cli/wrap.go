package cli

import (
	"strings"
	"unicode/utf8"
)

// Columns is how wide texts for people are.
const Columns = 80

// Wrap breaks a text into lines of at most Columns, between words; a word that is longer has a line of its own. Every line but the first
// begins with the indentation. Control characters are escaped.
func Wrap(text, indent string) string {
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	line, lines := lead, []string(nil)
	for _, word := range strings.Fields(Plain(text)) {
		switch {
		case strings.TrimSpace(line) == "":
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > Columns:
			lines = append(lines, line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	return strings.Join(append(lines, line), "\n")
}
