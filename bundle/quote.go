package bundle

import (
	"fmt"
	"strings"
)

// CommandLine joins argv into one command line that CommandLineToArgvW, and the C runtime and Go with it, splits into
// the same arguments: quotes around what holds a blank or is empty, a backslash before quotes, and backslashes doubled
// only where a quote follows (learn.microsoft.com/windows/win32/api/shellapi/nf-shellapi-commandlinetoargvw).
//
// The program's name (argv[0]) is split by simpler rules, without escapes. A path cannot hold a quote, so quoting is
// enough there.
func CommandLine(argv []string) string {
	quoted := make([]string, len(argv))
	for i, a := range argv {
		switch {
		case a != "" && !strings.ContainsAny(a, " \t\n\v\""):
			quoted[i] = a
		case i == 0:
			quoted[i] = `"` + a + `"`
		default:
			quoted[i] = quoteArg(a)
		}
	}
	return strings.Join(quoted, " ")
}

// Program returns the program of a command line that CommandLine made.
func Program(command string) string {
	if quoted, ok := strings.CutPrefix(command, `"`); ok {
		program, _, _ := strings.Cut(quoted, `"`)
		return program
	}
	program, _, _ := strings.Cut(command, " ")
	return program
}

func quoteArg(a string) string {
	var out strings.Builder
	out.WriteByte('"')
	backslashes := 0
	for _, c := range []byte(a) {
		switch c {
		case '\\':
			backslashes++
			continue
		case '"':
			out.WriteString(strings.Repeat(`\`, 2*backslashes+1))
		default:
			out.WriteString(strings.Repeat(`\`, backslashes))
		}
		backslashes = 0
		out.WriteByte(c)
	}
	out.WriteString(strings.Repeat(`\`, 2*backslashes))
	out.WriteByte('"')
	return out.String()
}

// PowerShell returns a single-quoted string of PowerShell, in which nothing has a meaning but the quote itself,
// doubled. Windows PowerShell reads a script without a byte order mark in the code page of the host, where other bytes
// can be quotation marks, so only printable ASCII is accepted (learn.microsoft.com, about_Quoting_Rules and
// about_Character_Encoding).
func PowerShell(s string) (string, error) {
	for _, r := range s {
		if r < ' ' || r > '~' {
			return "", fmt.Errorf("quoting for PowerShell: %U is not a printable ASCII character", r)
		}
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'", nil
}
