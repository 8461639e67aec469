package remote

import (
	"fmt"
	"regexp"
	"strings"

	"wmco/bundle"
)

// The command line has to mean the same to cmd.exe, PowerShell and sh, whichever the machine's SSH server starts. So it is
// a path and words in which no character is special to any of them. In the path, backslashes are doubled: sh makes one of
// two, and Windows takes two for one inside a path. Forward slashes would do for sh and PowerShell, but cmd.exe ends the
// name of a command at them.
var (
	// safePath is a path that needs nothing but doubled backslashes.
	safePath = regexp.MustCompile(`^[A-Z]:(\\[A-Za-z0-9_][A-Za-z0-9._-]*)+$`)
	// safeWord is an argument that needs nothing.
	safeWord = regexp.MustCompile(`^(-{0,2}[A-Za-z0-9][A-Za-z0-9._:-]*)$`)
)

// commandLine returns the line that runs the program at path with the words.
func commandLine(path string, words []string) (string, error) {
	if err := bundle.CheckPath(path); err != nil {
		return "", err
	}
	if !safePath.MatchString(path) {
		return "", fmt.Errorf("%q cannot be run by every shell: only letters, digits, dots, dashes and underscores can", path)
	}
	line := strings.ReplaceAll(path, `\`, `\\`)
	for _, word := range words {
		if !safeWord.MatchString(word) {
			return "", fmt.Errorf("%q cannot be an argument for every shell", word)
		}
		line += " " + word
	}
	return line, nil
}

// sftpPath is how SFTP names a Windows path (Win32-OpenSSH, sftp-server: /C:/k).
func sftpPath(path string) string { return "/" + strings.ReplaceAll(path, `\`, "/") }
