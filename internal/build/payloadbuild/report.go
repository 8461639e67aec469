package payloadbuild

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"wmco/internal/build/modules"
)

// ErrNotServed is the error if executables are missing only because modules cannot be downloaded.
var ErrNotServed = errors.New("some executables are missing: the module proxy does not serve their modules")

// reportResults prints one line for each selected component, and returns an error for the missing executables. failed
// are errors by the name of the executable.
func (o Options) reportResults(wanted []recipe, failed map[string]error) error {
	table := tabwriter.NewWriter(o.Progress, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tVERSION\tRESULT")
	for _, list := range byComponent(wanted) {
		fmt.Fprintf(table, "%s\t%s\t%s\n", list[0].Component, list[0].component.Version, describeResult(list, failed))
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		var refused *modules.RefusedError
		if !errors.As(failed[name], &refused) {
			problems = append(problems, fmt.Errorf("building %s: %w", name, failed[name]))
		}
	}
	if len(problems) == 0 && len(failed) > 0 {
		problems = append(problems, ErrNotServed)
	}
	return errors.Join(append(problems, table.Flush())...)
}

// describeResult lists the executables of a component that were built, and the others with the reason.
func describeResult(list []recipe, failed map[string]error) string {
	var built, missing []string
	for _, r := range list {
		if err := failed[r.Name]; err != nil {
			missing = append(missing, r.Name+" not built: "+firstLine(err))
		} else {
			built = append(built, r.Name)
		}
	}
	if len(built) > 0 {
		missing = append([]string{"built: " + strings.Join(built, ", ")}, missing...)
	}
	return strings.Join(missing, "; ")
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
