package testrun

import (
	"regexp"
	"strings"
)

// shownLines is how many lines of a failure are printed. The file of its output has all.
const shownLines = 25

var (
	// sourceLine begins what t.Error, t.Fatal, t.Skip and t.Log print.
	sourceLine = regexp.MustCompile(`^\s+\S+\.go:\d+: `)
	// framing are lines of go test itself.
	framing = regexp.MustCompile(`^\s*(=== |--- |FAIL\b|PASS\b|ok\s|exit status )`)
)

// reasonLines returns the output of a test by t.Error and the like, with the lines that belong to it.
func reasonLines(output []string) []string {
	var lines []string
	inside := false
	for _, line := range output {
		switch {
		case sourceLine.MatchString(line):
			inside = true
		case framing.MatchString(line) || !strings.HasPrefix(line, "        "):
			inside = false
		}
		if inside {
			lines = append(lines, line)
		}
	}
	return lines
}

// shownOf returns the part of an output that tells why a test failed: a panic from its beginning, else the end of what
// the test's output, else the end of all.
func shownOf(output []string) []string {
	for i, line := range output {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return output[i:min(len(output), i+shownLines)]
		}
	}
	lines := reasonLines(output)
	if len(lines) == 0 {
		lines = output
	}
	return lines[max(0, len(lines)-shownLines):]
}

// reasonOf returns why a test was skipped: its last output.
func reasonOf(output []string) string {
	lines := reasonLines(output)
	for i := len(lines) - 1; i >= 0; i-- {
		if at := sourceLine.FindString(lines[i]); at != "" {
			return strings.TrimSpace(strings.TrimPrefix(strings.Join(lines[i:], " "), at))
		}
	}
	return "it does not say why"
}
