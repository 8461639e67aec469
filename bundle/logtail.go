package bundle

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LogTail is the end of the log of a service, for people: the last lines that it wrote before it was found not to work.
// What a host sends of it is untrusted; BoundedTail limits it.
type LogTail struct {
	Service string   `json:"service"`
	Lines   []string `json:"lines"`
}

// Limits of a LogTail: how many lines, and how many bytes of one line and of all.
const (
	maxTailLines = 10
	maxTailLine  = 300
	maxTail      = 1 << 10
)

// escapeSequence is what a terminal acts on instead of showing it (ECMA-48: CSI and OSC, and escapes of two
// characters).
var escapeSequence = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|\x{9d})[^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?`)

// NewLogTail returns the last lines of what a service has written, without what may be a secret.
func NewLogTail(service, text string) LogTail {
	return LogTail{service, strings.Split(MaskLog(text), "\n")}.BoundedTail()
}

// IsZero reports whether there is none.
func (l LogTail) IsZero() bool { return len(l.Lines) == 0 }

// BoundedTail returns it within its limits, without control characters: the last lines, as many as fit.
func (l LogTail) BoundedTail() LogTail {
	var lines []string
	left := maxTail
	for _, line := range slices.Backward(l.Lines) {
		line = strings.TrimSpace(strings.ReplaceAll(plainLines(line), "\n", " "))
		if line == "" {
			continue
		}
		if len(line) > maxTailLine {
			line = strings.ToValidUTF8(line[:maxTailLine-3], "") + "..."
		}
		if left -= len(line); left < 0 || len(lines) == maxTailLines {
			break
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 || CheckServiceName(l.Service) != nil {
		return LogTail{}
	}
	slices.Reverse(lines)
	return LogTail{l.Service, lines}
}

// DescribeTail returns it as the end of a message of so many bytes: the last lines that fit. It is empty where none
// does.
func (l LogTail) DescribeTail(most int) string {
	for first := range l.Lines {
		if text := "; the log of " + l.Service + " ends: " + strings.Join(l.Lines[first:], " | "); len(text) <= most {
			return text
		}
	}
	return ""
}

// plainLines returns a text without control characters, but for the ends of lines.
func plainLines(text string) string {
	text = escapeSequence.ReplaceAllString(strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), ""), "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r >= ' ' && r <= '~':
			return r
		case r == '\t' || r == '\r' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError:
			return -1
		}
		return r
	}, text)
}
