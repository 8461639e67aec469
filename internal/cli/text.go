package cli

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ready is text that Printf prints as it is, such as coloured words.
type Ready string

// Printf prints a message for people. What hosts, files and clusters say in the arguments cannot look like a line of
// the program, nor reach the terminal as a command to it: control characters are escaped, and an error is one line. All
// messages are printed by it.
func Printf(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, plain(args)...) // a message that cannot be printed has no other way out
}

// PrintText prints a text of several lines, with control characters escaped. A carriage return that does not end a line
// would have what follows printed over what was there.
func PrintText(w io.Writer, text string) error {
	_, err := io.WriteString(w, escape(text, "\r\n\t"))
	return err
}

// Plain returns text without control characters: each is escaped as in Go, such as \n and \x1b.
func Plain(text string) string { return escape(text, "") }

func plain(args []any) []any {
	all := make([]any, len(args))
	for i, a := range args {
		all[i] = a
		switch v := a.(type) {
		case Ready:
		case error:
			all[i] = Plain(strings.ReplaceAll(v.Error(), "\n", "; "))
		case fmt.Stringer:
			all[i] = Plain(v.String())
		default:
			if r := reflect.ValueOf(a); r.Kind() == reflect.String {
				all[i] = Plain(r.String())
			}
		}
	}
	return all
}

// escape escapes control characters, but those that are kept.
func escape(text, kept string) string {
	var out strings.Builder
	for i, r := range text {
		size := utf8.RuneLen(r)
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case r < utf8.RuneSelf && strings.ContainsRune(kept, r) && (r != '\r' || strings.HasPrefix(text[i+1:], "\n")), !isControl(r):
			out.WriteString(text[i : i+size])
		default:
			quoted := fmt.Sprintf("%+q", r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return out.String()
}

// isControl reports whether a terminal may act on a character, or show others in another order because of it (Unicode,
// UAX 9).
func isControl(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
