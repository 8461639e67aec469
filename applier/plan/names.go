package plan

import (
	"path"
	"strings"

	"wmco/bundle"
)

// StateFolder holds what the applier keeps on a host, readable by SYSTEM and Administrators only.
const StateFolder = `C:\ProgramData\wmco`

// LockFile is what hosts lock, or beside which they do.
const LockFile = StateFolder + `\lock`

// The marks in the names of files that a cut may leave behind.
const (
	newMark   = ".wmco-new"
	asideMark = ".wmco-old-"
)

// NewName is the name under which a host writes a file before it takes its place. Only the holder of the lock writes, so
// one name is enough, and a later run replaces what a cut left there.
func NewName(path string) string { return path + newMark }

// AsideName is a name to which a host moves a program that runs, since Windows neither replaces nor removes one; serial
// tells several apart.
func AsideName(path, serial string) string { return path + asideMark + serial }

// Leftover tells whether a path is one of NewName or AsideName: a later run removes it.
func Leftover(path string) bool {
	name := bundle.FoldPath(bundle.Base(path))
	return strings.HasSuffix(name, newMark) || strings.Contains(name, asideMark)
}

// Matches tells whether the last element of a Windows path matches a pattern of path.Match, without regard to case.
func Matches(pattern, windows string) bool {
	ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(bundle.Base(windows)))
	return ok && err == nil
}
