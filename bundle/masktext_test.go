package bundle

import (
	"strings"
	"testing"
)

// TestValuesOfSecretsBeyondTheirLine: the lines that are looked at are masked as the whole text would be.
func TestValuesOfSecretsBeyondTheirLine(t *testing.T) {
	for _, text := range []string{
		"", "\n", "none\nof\nthese\n", "password: hunter2", "a\npassword:\n\n  hunter2\nb\n", "a\n--token hunter2\nb", "run --token\nhunter2\nb\n", "a\n\nsecret =\n",
		"token: hunter2\npassword=hunter2\n\nb\nPWD='hunter2'\nc\nsig: x?sig=hunter2", "a\nkey\nb\n\nkeyboard\n\"auth\": \"hunter2\"\nc", "API-KEY: hunter2\nb\n--secret-file hunter2\n\n\n",
	} {
		for _, text := range []string{text, strings.ReplaceAll(text, "\n", "\n\n"), "x\n" + text + "\n" + text} {
			if got, want := maskNamed(text), maskValues(text); got != want || strings.Contains(got, "hunter2") {
				t.Errorf("%q: %q, want %q", text, got, want)
			}
		}
	}
}

// TestALogOfAHostIsMaskedInItsSize: what a host writes cannot make that take days. In its square, a megabyte would.
func TestALogOfAHostIsMaskedInItsSize(t *testing.T) {
	const size = 1 << 20
	for name, part := range map[string]string{
		"a key without an end": "-----BEGIN PRIVATE KEY-----\nBearer abcdefghijklmnopqrstuvwxyz ", "digests": "a@sha256:", "addresses of digests": "://a@sha256:",
	} {
		if got := MaskLog(strings.Repeat(part, size/len(part))); strings.Contains(got, "abcdefgh") {
			t.Errorf("%s: %.100s", name, got)
		}
	}
}
