package pages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wmco/internal/cli"
)

// manyCommands is how many commands have to share a flag until the page lists it once for all of them.
const manyCommands = 5

// commandsPage is cli.md: the help of every command. Flags that many commands share are listed once.
func commandsPage(root *cobra.Command) string {
	commands := documentedCommands(root)
	shared := sharedFlags(commands)
	var out strings.Builder
	out.WriteString("# Commands\n\nGenerated from the commands' own help (`make generate`).\n\n")
	fmt.Fprintf(&out, "%s\n\n## Common flags\n\n```\n%s```\n\nThose of a kubeconfig: `%s`.\n", root.Long, shared.FlagUsagesWrapped(cli.Columns), strings.Join(kubeconfigFlags(), "`, `"))
	first := map[string]string{}
	for _, c := range commands {
		own, common := usageWithout(c, shared)
		fmt.Fprintf(&out, "\n## %s\n\n```\n%s\n\n%s", c.CommandPath(), longOnce(c, first), own)
		if len(common) > 0 {
			fmt.Fprintf(&out, "\n%s\n", cli.Wrap("Common flags: "+strings.Join(groupKubeconfigFlags(common), ", "), "  "))
		}
		out.WriteString("```\n")
	}
	return out.String()
}

// longOnce returns the description of a command. An exit status that an earlier command has is a reference to that one.
func longOnce(c *cobra.Command, first map[string]string) string {
	long := cmp.Or(c.Long, c.Short)
	text, statuses, ok := strings.Cut(long, "\nExit status:\n")
	if !ok {
		return long
	}
	if earlier, ok := first[statuses]; ok {
		return text + "\nExit status: as " + earlier
	}
	first[statuses] = c.CommandPath()
	return long
}

// kubeconfigFlags choose a cluster and its user. A command has all of them or none.
func kubeconfigFlags() []string {
	return []string{"--as", "--as-group", "--cluster", "--context", "--kubeconfig", "--request-timeout", "--user"}
}

// groupKubeconfigFlags replaces kubeconfigFlags by their common name.
func groupKubeconfigFlags(flags []string) []string {
	others := slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return slices.Contains(kubeconfigFlags(), f) })
	if len(flags)-len(others) < len(kubeconfigFlags()) {
		return flags
	}
	return append([]string{"those of a kubeconfig"}, others...)
}

// documentedCommands returns the commands that have a part of the page, each before those below it.
func documentedCommands(root *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	for _, c := range root.Commands() {
		if !c.Hidden && c.Name() != "help" && c.Name() != "completion" {
			list = append(append(list, c), c.Commands()...)
		}
	}
	return list
}

// sharedFlags returns the flags that many commands have with the same text, and --help.
func sharedFlags(commands []*cobra.Command) *pflag.FlagSet {
	type text struct{ name, usage, value string }
	count, flags := map[text]int{}, map[text]*pflag.Flag{}
	for _, c := range commands {
		c.InitDefaultHelpFlag()
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			t := text{f.Name, f.Usage, f.DefValue}
			count[t]++
			flags[t] = f
		})
	}
	shared := pflag.NewFlagSet("shared", pflag.ContinueOnError)
	for _, t := range slices.SortedFunc(maps.Keys(count), func(a, b text) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.name, b.name))
	}) {
		if count[t] >= manyCommands && shared.Lookup(t.name) == nil {
			shared.AddFlag(flags[t])
		}
	}
	return shared
}

// usageWithout returns the usage of a command without its shared flags, and the names of these.
func usageWithout(c *cobra.Command, shared *pflag.FlagSet) (string, []string) {
	var names []string
	var hidden []*pflag.Flag
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if s := shared.Lookup(f.Name); f.Name != "help" && (s == nil || s.Usage != f.Usage || s.DefValue != f.DefValue) {
			return
		}
		if f.Name != "help" {
			names = append(names, "--"+f.Name)
		}
		hidden, f.Hidden = append(hidden, f), true
	})
	defer func() {
		for _, f := range hidden {
			f.Hidden = false
		}
	}()
	return c.UsageString(), names
}
