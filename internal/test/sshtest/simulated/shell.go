package simulated

import (
	"fmt"
	"strings"
)

// SplitWords splits a command line as the shell does. Anything but plain words is an error: our command lines need
// nothing else.
func SplitWords(s Shell, line string) ([]string, error) {
	special, escape := quotingRules(s)
	if i := strings.IndexAny(line, special); i >= 0 {
		return nil, fmt.Errorf("%q is special to %s", line[i], s)
	}
	if escape {
		line = unescape(line)
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil, fmt.Errorf("nothing to run")
	}
	if s == ShellCmd && strings.Contains(words[0], "/") {
		return nil, fmt.Errorf("cmd.exe ends the name of a command at a slash: %q", words[0])
	}
	return words, nil
}

// quotingRules returns the characters that are special to a shell, and whether a backslash escapes.
//
// cmd.exe: learn.microsoft.com/windows-server/administration/windows-commands/cmd, "special characters"; , ; = separate
// words as blanks do. PowerShell: about_Parsing, about_Special_Characters. sh: POSIX Shell Command Language, 2.2 and
// 2.6.
func quotingRules(s Shell) (special string, escape bool) {
	switch s {
	case ShellCmd:
		return "\"&|<>^%!()@,;=`'[]{}+~*?\r\n", false
	case ShellPowerShell:
		return "\"'`$&|<>(){}@,;#%!=*?[]\r\n", false
	case ShellSh, ShellPlain:
		return "\"'`$&|<>(){};#!=*?[]~\r\n", true
	}
	return "", false
}

func unescape(line string) string {
	var out strings.Builder
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' && i+1 < len(line) {
			i++
		}
		out.WriteByte(line[i])
	}
	return out.String()
}
