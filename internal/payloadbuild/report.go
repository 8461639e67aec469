package payloadbuild

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"wmco/internal/modules"
)

// ErrNotServed says that executables are missing because modules cannot be downloaded, and for no other reason.
var ErrNotServed = errors.New("some executables are missing: the module proxy does not serve what they are built from (make pins)")

// report prints one line for each component that was asked for, and returns what is missing.
func (o Options) report(wanted []recipe, failed map[string]error) error {
	table := tabwriter.NewWriter(o.Progress, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tVERSION\tRESULT")
	for _, list := range byComponent(wanted) {
		component := list[0].Component
		result := "built: " + strings.Join(recipeNames(list), ", ")
		if err := failed[component]; err != nil {
			result = "not built: " + firstLine(err)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", component, list[0].component.Version, result)
	}
	var problems []error
	for _, component := range slices.Sorted(maps.Keys(failed)) {
		var refused *modules.RefusedError
		if !errors.As(failed[component], &refused) {
			problems = append(problems, fmt.Errorf("building %s: %w", component, failed[component]))
		}
	}
	if len(problems) == 0 && len(failed) > 0 {
		problems = append(problems, ErrNotServed)
	}
	return errors.Join(append(problems, table.Flush())...)
}

func recipeNames(list []recipe) []string {
	var names []string
	for _, r := range list {
		names = append(names, r.Name)
	}
	return names
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
