package bundle

import "testing"

func TestPowerShellQuotes(t *testing.T) {
	for s, want := range map[string]string{
		"":                         `''`,
		"sshd":                     `'sshd'`,
		`C:\k\it's "$here" ` + "`": `'C:\k\it''s "$here" ` + "`'",
		"''":                       `''''''`,
	} {
		if got, err := PowerShell(s); got != want || err != nil {
			t.Errorf("PowerShell(%q) = %s, %v; want %s", s, got, err, want)
		}
	}
	// Line ends, and quotation marks of PowerShell in one code page or another.
	for _, s := range []string{"a\nb", "a\r", "a\x00b", "\u2019", "\u201b", "\x92", "\x7f", "\u00e9"} {
		if got, err := PowerShell(s); err == nil {
			t.Errorf("PowerShell(%q) = %s, want an error", s, got)
		}
	}
}
