package simulation

import "strings"

// SplitCommandLine splits a command line as CommandLineToArgvW does
// (learn.microsoft.com/windows/win32/api/shellapi/nf-shellapi-commandlinetoargvw): the counterpart of
// bundle.CommandLine.
func SplitCommandLine(line string) []string {
	if line == "" {
		return nil
	}
	program, rest := splitProgram(line)
	argv := []string{program}
	for {
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" {
			return argv
		}
		var arg string
		arg, rest = splitArgument(rest)
		argv = append(argv, arg)
	}
}

// splitProgram reads the program's name, in which a backslash has no meaning and a quote only one at the beginning.
func splitProgram(line string) (program, rest string) {
	if quoted, ok := strings.CutPrefix(line, `"`); ok {
		program, rest, _ = strings.Cut(quoted, `"`)
		return program, rest
	}
	end := strings.IndexAny(line, " \t")
	if end < 0 {
		return line, ""
	}
	return line[:end], line[end:]
}

// splitArgument reads up to the first blank outside quotes. Of n backslashes before a quote, n/2 stay; the odd one
// makes the quote a character. Two quotes inside quotes are one.
func splitArgument(line string) (arg, rest string) {
	var out strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		backslashes := len(line[i:]) - len(strings.TrimLeft(line[i:], `\`))
		i += backslashes
		if i == len(line) || line[i] != '"' {
			out.WriteString(strings.Repeat(`\`, backslashes))
		}
		switch {
		case i == len(line):
			return out.String(), ""
		case line[i] == '"':
			out.WriteString(strings.Repeat(`\`, backslashes/2))
			switch {
			case backslashes%2 == 1:
				out.WriteByte('"')
			case quoted && strings.HasPrefix(line[i+1:], `"`):
				out.WriteByte('"')
				i++
			default:
				quoted = !quoted
			}
		case !quoted && (line[i] == ' ' || line[i] == '\t'):
			return out.String(), line[i:]
		default:
			out.WriteByte(line[i])
		}
	}
	return out.String(), ""
}
