package bundle

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// ErrPath is wrapped by every error of CheckPath and CheckName.
var ErrPath = errors.New("not a path that a bundle may name")

// MaxPath is the longest path in a bundle, in characters. Win32 calls without the \\?\ prefix stop at 260 with the
// final NUL (learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation), and the programs that read our
// files do not all use the prefix.
const MaxPath = 259

// deviceName matches the reserved DOS device names, which Windows resolves to a device in any folder and with any
// extension (learn.microsoft.com/windows/win32/fileio/naming-a-file). The superscript digits are reserved as well.
var deviceName = regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)( *\..*)?$`)

// clockName matches the device name of the clock of DOS, which is no longer reserved: others may have a file of that
// name.
var clockName = regexp.MustCompile(`(?i)^clock\$( *\..*)?$`)

// deleteCharacter is DEL. Windows allows it in names; terminals and logs show nothing for it.
const deleteCharacter = "\x7f"

// isShortName reports whether a name has the form of the 8.3 names that a volume gives to files with long names: up to
// eight characters that end in a tilde and digits, and an extension of up to three
// (learn.microsoft.com/windows/win32/fileio/naming-a-file, "Short vs. Long Names"). `KUBELE~1.CON` is another path of
// kubelet.conf, which no comparison of paths shows.
func isShortName(name string) bool {
	const maxBase, maxExtension = 8, 3
	base, extension, _ := strings.Cut(name, ".")
	tilde := strings.LastIndexByte(base, '~')
	if tilde < 0 || len(base) > maxBase || len(extension) > maxExtension || strings.Contains(extension, ".") {
		return false
	}
	number := base[tilde+1:]
	return number != "" && strings.Trim(number, "0123456789") == ""
}

// MaxFile is the longest path of a file in a bundle: the marks of the names under which a host writes it and moves it
// aside have to fit behind it.
const MaxFile = MaxPath - len(AsideMark) - maxSerial

// Marks at the end of names that only a host gives to files, beside the files of a bundle. AsideMark is followed by a
// serial number.
const (
	NewMark   = ".wmco-new"
	AsideMark = ".wmco-old-"
	maxSerial = len("9999")
)

// Temporary reports whether a path has one of the marks of a host, so that no bundle may name it.
func Temporary(path string) bool {
	name := FoldPath(Base(path))
	return strings.HasSuffix(name, NewMark) || strings.Contains(name, AsideMark)
}

// CheckPath returns an error unless a bundle may name the path: it is one that CheckHostPath allows, in ASCII. NTFS
// compares other letters by a table of the volume, which only that volume has: U+212A and K are two names there, and
// one to Go.
func CheckPath(path string) error {
	if err := CheckHostPath(path); err != nil {
		return err
	}
	if !isASCII(path) {
		return fmt.Errorf("%w: %q has letters other than ASCII", ErrPath, path)
	}
	if strings.Contains(path, deleteCharacter) {
		return fmt.Errorf("%w: %q has the control character DEL", ErrPath, path)
	}
	for name := range strings.SplitSeq(path[3:], `\`) {
		if isShortName(name) {
			return fmt.Errorf("%w: in %q, %q can be the short name of another file: write the long name", ErrPath, path, name)
		}
		if clockName.MatchString(name) {
			return fmt.Errorf("%w: in %q, %q is the name of a device", ErrPath, path, name)
		}
	}
	if Temporary(path) {
		return fmt.Errorf("%w: %q has a mark of temporary files, %s or %s", ErrPath, path, NewMark, AsideMark)
	}
	return nil
}

// checkFilePath is CheckPath for a file, which is written under another name first.
func checkFilePath(path string) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	if len(path) > MaxFile {
		return fmt.Errorf(
			"%w: %q has %d characters, at most %d leave room for the name of a temporary file", ErrPath,
			path[:40]+"...", len(path), MaxFile,
		)
	}
	return nil
}

// CheckHostPath returns an error unless path is an absolute, canonical Windows path on a drive: `C:\k\kubelet.conf`.
// Anything that could lead elsewhere is refused: `..`, forward slashes, streams (`a:b`), devices, trailing dots and
// spaces, which Windows strips. Files that others made may have such a path that CheckPath refuses.
func CheckHostPath(path string) error {
	if len(path) < 4 || path[1] != ':' || path[2] != '\\' || path[0] < 'A' || path[0] > 'Z' {
		return fmt.Errorf(`%w: %q does not begin with a drive such as C:\`, ErrPath, path)
	}
	if n := utf8.RuneCountInString(path); n > MaxPath {
		return fmt.Errorf("%w: %q has %d characters, at most %d are allowed", ErrPath, path[:40]+"...", n, MaxPath)
	}
	for name := range strings.SplitSeq(path[3:], `\`) {
		if err := CheckName(name); err != nil {
			return fmt.Errorf("in %q: %w", path, err)
		}
	}
	return nil
}

// CheckName returns an error unless name can be one element of a Windows path
// (learn.microsoft.com/windows/win32/fileio/naming-a-file).
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: an empty name", ErrPath)
	case name == "." || name == "..":
		return fmt.Errorf("%w: %q leads to another folder", ErrPath, name)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: %q is not UTF-8", ErrPath, name)
	case strings.ContainsAny(name, `<>:"/\|?*`) || strings.ContainsFunc(name, isControl):
		return fmt.Errorf("%w: %q has a character that Windows reserves", ErrPath, name)
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return fmt.Errorf("%w: %q ends in a dot or space, which Windows drops", ErrPath, name)
	case deviceName.MatchString(name):
		return fmt.Errorf("%w: %q is the name of a device", ErrPath, name)
	}
	return nil
}

func isControl(r rune) bool { return r < 0x20 }

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// FoldPath returns the form in which paths are compared, without regard to the case of ASCII letters. No other letter
// is the upper or lower case of an ASCII letter on NTFS: strings.ToLower, which folds U+212A to k and U+0130 to i,
// would take a path elsewhere for one in a managed folder.
func FoldPath(path string) string {
	upper := func(c byte) bool { return 'A' <= c && c <= 'Z' }
	i := 0
	for i < len(path) && !upper(path[i]) {
		i++
	}
	if i == len(path) {
		return path
	}
	folded := []byte(path)
	for ; i < len(folded); i++ {
		if upper(folded[i]) {
			folded[i] += 'a' - 'A'
		}
	}
	return string(folded)
}

// Base returns the last element of a Windows path.
func Base(path string) string { return path[strings.LastIndexByte(path, '\\')+1:] }

// Dir returns the folder of a Windows path, without a backslash at its end except for the root of a drive.
func Dir(path string) string {
	i := strings.LastIndexByte(path, '\\')
	if i <= 2 {
		return path[:min(3, len(path))]
	}
	return path[:i]
}
