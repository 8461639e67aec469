package plan

import (
	"path"
	"strings"

	"wmco/bundle"
)

// StateFolder holds the applier's records on a host. Only SYSTEM and Administrators can read it.
const StateFolder = `C:\ProgramData\wmco`

// LockFile is the file that Windows hosts lock.
const LockFile = StateFolder + `\lock`

// NewName is the name under which a host writes a file before it replaces the old one. Only the holder of the lock
// writes, so one name is enough, and a later run overwrites what an interruption left there.
func NewName(path string) string { return path + bundle.NewMark }

// AsideName is a name to which a host moves a running program, because Windows neither replaces nor removes one; serial
// keeps several apart.
func AsideName(path, serial string) string { return path + bundle.AsideMark + serial }

// IsLeftover reports whether a path is a NewName or an AsideName, which later runs remove.
func IsLeftover(path string) bool { return bundle.Temporary(path) }

// MatchesPattern reports whether the last element of a Windows path matches a pattern of path.Match, without regard to
// case.
func MatchesPattern(pattern, windows string) bool {
	ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(bundle.Base(windows)))
	return ok && err == nil
}
