package pages

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// commandsPage is cli.md: the help of every command, one after another.
func commandsPage(root *cobra.Command) string {
	var out strings.Builder
	out.WriteString("# Commands\n\nGenerated from the commands' own help (`make generate`).\n\n")
	fmt.Fprintf(&out, "%s\n", root.Long)
	for _, cmd := range root.Commands() {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
			continue
		}
		for _, c := range append([]*cobra.Command{cmd}, cmd.Commands()...) {
			c.InitDefaultHelpFlag()
			fmt.Fprintf(&out, "\n## %s\n\n```\n%s\n\n%s```\n", c.CommandPath(), cmp.Or(c.Long, c.Short), c.UsageString())
		}
	}
	return out.String()
}
