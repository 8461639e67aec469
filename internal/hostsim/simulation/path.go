package simulation

import (
	"fmt"
	"strings"

	"wmco/bundle"
)

// Drive is the root of the one drive of a simulated host.
const Drive = `C:\`

// CheckPath reports why path is no path of a simulated host: bundle.CheckPath without its limit of length, which a name
// with a mark of plan.NewName or plan.AsideName may exceed.
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

// isPath reports whether a text, such as an argument of a program, is a path of a simulated host.
func isPath(text string) bool { return CheckPath(text) == nil }

// Join returns the path of a name in a folder, which may be Drive.
func Join(folder, name string) string { return strings.TrimSuffix(folder, `\`) + `\` + name }
