package simulation

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

func TestSplitCommandLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		sentence string
		line     string
		want     []string
	}{
		{"nothing is no command", ``, nil},
		{"a program alone", `C:\k\a.exe`, []string{`C:\k\a.exe`}},
		{"a program with a blank", `"C:\k dir\a.exe" b`, []string{`C:\k dir\a.exe`, "b"}},
		{"a backslash means nothing in the program", `"C:\k\" b`, []string{`C:\k\`, "b"}},
		{"blanks between arguments are one", "a.exe  b \t c  ", []string{"a.exe", "b", "c"}},
		{"quotes hold blanks", `a.exe "b c"`, []string{"a.exe", "b c"}},
		{"quotes may be in the middle", `a.exe b" "c`, []string{"a.exe", "b c"}},
		{"empty quotes are an argument", `a.exe "" b`, []string{"a.exe", "", "b"}},
		{"a backslash is itself without a quote", `a.exe b\\c\d`, []string{"a.exe", `b\\c\d`}},
		{"a backslash makes a quote a character", `a.exe b\"c`, []string{"a.exe", `b"c`}},
		{"two backslashes before a quote are one", `a.exe "b\\" c`, []string{"a.exe", `b\`, "c"}},
		{"three backslashes before a quote are one and the quote", `a.exe b\\\"c`, []string{"a.exe", `b\"c`}},
		{"two quotes in quotes are one", `a.exe "b""c" d`, []string{"a.exe", `b"c`, "d"}},
		{"a quote may be left open", `a.exe "b c`, []string{"a.exe", "b c"}},
		{"backslashes at the end are themselves", `a.exe b\\`, []string{"a.exe", `b\\`}},
	}
	for _, tt := range tests {
		t.Run(tt.sentence, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, SplitCommandLine(tt.line)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// FuzzCommandLine: what bundle.CommandLine joins, SplitCommandLine splits. The arguments are parted by NUL, which none can
// hold.
func FuzzCommandLine(f *testing.F) {
	f.Add(`C:\k\a.exe` + "\x00" + `a b` + "\x00" + `say "hi"\\` + "\x00\x00" + `\\"`)
	f.Fuzz(func(t *testing.T, joined string) {
		argv := append([]string{`C:\k dir\a.exe`}, strings.Split(joined, "\x00")...)
		if got := SplitCommandLine(bundle.CommandLine(argv)); !slices.Equal(argv, got) {
			t.Errorf("%q became %q", argv, got)
		}
	})
}
