package simulation

import (
	"fmt"
	"strconv"
	"strings"

	"wmco/applier"
	"wmco/bundle"
)

// Drive is the root of the one drive of a simulated machine.
const Drive = `C:\`

// CheckPath tells whether a host may be asked about path: bundle.CheckPath without its limit of length, which a name with
// a mark of applier.NewName or applier.AsideName may exceed.
func CheckPath(path string) error {
	if !strings.HasPrefix(path, Drive) {
		return fmt.Errorf("%w: %q does not begin with %s", bundle.ErrPath, path, Drive)
	}
	for name := range strings.SplitSeq(path[len(Drive):], `\`) {
		if err := bundle.CheckName(name); err != nil {
			return fmt.Errorf("in %q: %w", path, err)
		}
	}
	return nil
}

// Names tells whether CheckPath allows a text that may be none, such as an argument of a program.
func Names(path string) bool { return CheckPath(path) == nil }

// CheckOther tells whether a file can be copied or linked to another path: not from the name under which a host makes that.
func CheckOther(path, to string) error {
	if bundle.FoldPath(path) == bundle.FoldPath(applier.NewName(to)) {
		return &applier.FileError{Path: path, Reason: applier.FileBroken, Err: ErrSharingViolation}
	}
	return nil
}

// FreeAside is the first of the names to which path can be moved aside that taken does not know.
func FreeAside(path string, taken func(string) (bool, error)) (string, error) {
	for n := 1; ; n++ {
		name := applier.AsideName(path, strconv.Itoa(n))
		used, err := taken(name)
		if err != nil || !used {
			return name, err
		}
	}
}
