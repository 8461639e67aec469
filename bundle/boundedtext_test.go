package bundle

import (
	"strings"
	"testing"
)

// TestWhatAHostSaysIsBounded, one line, and holds no secret and no command to a terminal.
func TestWhatAHostSaysIsBounded(t *testing.T) {
	for text, want := range map[string]string{
		"applying: 3 of 12, start service kubelet":     "applying: 3 of 12, start service kubelet",
		"a\x1b[31mred\x1b[0m\r\nb\u202e":               "ared b",
		"reading https://me:secret@example.com failed": "reading https://" + MaskedUser + "@example.com failed",
		"--x password=hunter2 y":                       "--x password=" + MaskedText + " y",
		"pass\x1b[1mword=hunter2":                      "password=" + MaskedText,
		"  ":                                           "",
	} {
		if got := BoundedText(text, 200); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{strings.Repeat("x ", 1<<20), strings.Repeat("\u20ac", 1000), strings.Repeat("\x00", 1<<20) + "x"} {
		if got := BoundedText(text, 100); len(got) > 100 || !strings.HasSuffix(got, "...") && got != "" {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}
