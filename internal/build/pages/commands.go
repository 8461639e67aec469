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

// commandsPage is cli.md: the help of every command. What several commands share is there once.
func commandsPage(root *cobra.Command) string {
	commands := documentedCommands(root)
	shared := sharedFlags(commands)
	var out strings.Builder
	out.WriteString("# Commands\n\nGenerated from the commands' own help (`make generate`).\n\n")
	fmt.Fprintf(&out, "%s\n\nA command that is interrupted ends with status 130.\n\n## Common flags\n\n```\n%s```\n\n", root.Long, shared.FlagUsagesWrapped(cli.Columns))
	for _, g := range flagGroups() {
		fmt.Fprintf(&out, "* those of %s: `%s`\n", g.name, strings.Join(g.flags, "`, `"))
	}
	first := map[string]string{}
	for _, c := range commands {
		text, end := cutEnd(strings.Replace(cmp.Or(c.Long, c.Short), "\n  130  interrupted", "", 1))
		usage, common := usageWithout(c, shared)
		if earlier, ok := first[end+common]; ok && end != "" {
			end, common = "\n\nOutput, exit status and common flags: as "+earlier, ""
		} else {
			first[end+common] = c.CommandPath()
		}
		fmt.Fprintf(&out, "\n## %s\n\n```\n%s%s\n%s%s```\n", c.CommandPath(), text, end, usage, common)
	}
	return out.String()
}

// cutEnd cuts the description of a command before the last paragraph above the exit statuses: several commands have the same end.
func cutEnd(long string) (text, end string) {
	statuses := strings.Index(long, "\n\nExit status:\n")
	if statuses < 0 {
		return long, ""
	}
	last := strings.LastIndex(long[:statuses], "\n\n")
	if last < 0 {
		last = statuses
	}
	return long[:last], long[last:]
}

// flagGroup has a name for flags that many commands have together.
type flagGroup struct {
	name  string
	flags []string
}

func flagGroups() []flagGroup {
	return []flagGroup{
		{"a kubeconfig", []string{"--as", "--as-group", "--cluster", "--context", "--kubeconfig", "--request-timeout", "--user"}},
		{"hosts", []string{"--host", "--identity", "--known-hosts", "--node-program", "--parallel"}},
		{"inputs", []string{"--facts", "--from", "--instance", "--namespace", "--node", "--payload", "--strict"}},
	}
}

// groupFlags replaces the flags of each whole group by its name.
func groupFlags(flags []string) []string {
	for _, g := range slices.Backward(flagGroups()) {
		others := slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return slices.Contains(g.flags, f) })
		if len(flags)-len(others) == len(g.flags) {
			flags = append([]string{"those of " + g.name}, others...)
		}
	}
	return flags
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

// usageWithout returns the usage of a command without its shared flags, and a line with these. A command that only has others below it has no usage: they follow.
func usageWithout(c *cobra.Command, shared *pflag.FlagSet) (usage, common string) {
	if c.HasAvailableSubCommands() {
		return "", ""
	}
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
	if len(names) > 0 {
		common = "\n" + cli.Wrap("Common flags: "+strings.Join(groupFlags(names), ", "), "  ") + "\n"
	}
	return "\n" + c.UsageString(), common
}
