package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Usage has the requirements of a command line, beside those of each flag.
type Usage struct {
	// Args are the names of the arguments, such as DIR. All are needed, and no more are accepted.
	Args []string
	// Needs are what must be given with flags.
	Needs []Need
	// Alone are groups of flags of which one at most is given.
	Alone [][]string
}

// Need is something that must be given.
type Need struct {
	// Flags are those that give it. One of them is enough.
	Flags []string
	// With is the flag that needs it; empty where the command always does.
	With string
	// Text is the advice: "give the objects of a cluster with --from PATH".
	Text string
}

// Expect makes a command check its command line. Everything that is wrong with it is one message.
func Expect(cmd *cobra.Command, u Usage) {
	for _, n := range u.Needs {
		if len(n.Flags) == 1 && n.With == "" {
			_ = cmd.MarkFlagRequired(n.Flags[0]) // for completions
		}
	}
	for _, group := range u.Alone {
		cmd.MarkFlagsMutuallyExclusive(group...) // for completions
	}
	cmd.Args = u.Check
}

// Check checks a command line. It is the Args of a command without Needs and Alone.
func (u Usage) Check(cmd *cobra.Command, args []string) error {
	problems := slices.Concat(u.wrongArgs(cmd, args), u.missing(cmd), u.together(cmd))
	if len(problems) == 0 {
		return nil
	}
	return UsageError("%s", strings.Join(problems, "; "))
}

func (u Usage) wrongArgs(cmd *cobra.Command, args []string) []string {
	var problems []string
	for _, name := range u.Args[min(len(args), len(u.Args)):] {
		problems = append(problems, name+" is missing: write "+strings.Join(append([]string{cmd.CommandPath()}, u.Args...), " "))
	}
	for _, extra := range args[min(len(args), len(u.Args)):] {
		problems = append(problems, fmt.Sprintf("unexpected argument %q", extra))
	}
	return problems
}

func (u Usage) missing(cmd *cobra.Command) []string {
	given := cmd.Flags().Changed
	var problems []string
	for _, n := range u.Needs {
		if (n.With == "" || given(n.With)) && !slices.ContainsFunc(n.Flags, given) {
			problems = append(problems, n.Text)
		}
	}
	return problems
}

func (u Usage) together(cmd *cobra.Command) []string {
	var problems []string
	for _, group := range u.Alone {
		var given []string
		for _, name := range group {
			if cmd.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			problems = append(problems, "give only one of "+And(given))
		}
	}
	return problems
}

// Group makes a command that only holds others refuse any other word. Without one, it prints its help.
func Group(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		meant := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			meant = ", did you mean " + strings.Join(near, " or ") + "?"
		}
		return UsageError("unknown command %q%s: %s --help lists the commands", args[0], meant, cmd.CommandPath())
	}
}

// And returns words as an enumeration: "a, b and c".
func And(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// flagError describes an invalid flag.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var empty *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown):
		name := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			name = "-" + unknown.GetSpecifiedName()
		}
		return UsageError("%s has no flag %s: %s --help lists its flags", cmd.CommandPath(), name, cmd.CommandPath())
	case errors.As(err, &empty):
		return UsageError("--%s needs a value", empty.GetFlag().Name)
	case errors.As(err, &invalid):
		return UsageError("--%s %s: %w", invalid.GetFlag().Name, invalid.GetValue(), valueError(invalid))
	case errors.As(err, &syntax):
		return UsageError("%s is not a flag: %s --help lists its flags", syntax.GetSpecifiedFlag(), cmd.CommandPath())
	}
	return UsageError("%w", err)
}

// valueError describes what the value of a flag must be. Flags of our own types do that themselves.
func valueError(invalid *pflag.InvalidValueError) error {
	switch invalid.GetFlag().Value.Type() {
	case "int":
		return errors.New("must be a whole number")
	case "bool":
		return errors.New("must be true or false")
	case "duration":
		return errors.New("must be a duration such as 90s or 5m")
	}
	return invalid.Unwrap()
}
