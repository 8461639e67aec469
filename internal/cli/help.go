package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// FitHelp makes the help of a program and of all its commands fit into Columns: paragraphs are filled, and lines that
// begin with blanks, such as exit statuses, are broken one by one. Command lines of examples are continued on the next
// line.
func FitHelp(root *cobra.Command) {
	root.SetUsageFunc(func(c *cobra.Command) error {
		_, err := c.OutOrStderr().Write([]byte(usageText(c)))
		return err
	})
	var fit func(*cobra.Command)
	fit = func(c *cobra.Command) {
		c.Long = fillParagraphs(c.Long)
		for _, below := range c.Commands() {
			fit(below)
		}
	}
	fit(root)
}

// fillParagraphs fills the paragraphs of a text.
func fillParagraphs(text string) string {
	var lines []string
	paragraph := ""
	end := func() {
		if paragraph != "" {
			lines = append(lines, Wrap(paragraph, ""))
		}
		paragraph = ""
	}
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "":
			end()
			lines = append(lines, "")
		case strings.HasPrefix(line, " "):
			end()
			lines = append(lines, breakLine(line))
		case strings.HasSuffix(paragraph, ":"):
			end()
			paragraph = line
		default:
			paragraph = strings.TrimPrefix(paragraph+" "+line, " ")
		}
	}
	end()
	return strings.Join(lines, "\n")
}

// breakLine breaks a line that is too long. What follows begins under its first text after two blanks, as that of an
// exit status does.
func breakLine(line string) string {
	if len(line) <= Columns {
		return line
	}
	lead := len(line) - len(strings.TrimLeft(line, " "))
	indent := lead
	if i := strings.Index(line[lead:], "  "); i > 0 {
		indent = len(line) - len(strings.TrimLeft(line[lead+i:], " "))
	}
	head := line[:indent]
	return head + strings.TrimLeft(Wrap(strings.Repeat(" ", indent)+line[indent:], strings.Repeat(" ", indent)), " ")
}

// usageText is what help prints below the text of a command.
func usageText(c *cobra.Command) string {
	var out strings.Builder
	out.WriteString("Usage:\n")
	if c.Runnable() && !c.HasAvailableSubCommands() {
		fmt.Fprintf(&out, "%s\n", Wrap("  "+c.UseLine(), "      "))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&out, "  %s [command]\n", c.CommandPath())
	}
	if c.HasExample() {
		fmt.Fprintf(&out, "\nExamples:\n%s\n", continueLines(c.Example))
	}
	for _, g := range c.Groups() {
		fmt.Fprintf(&out, "\n%s:\n%s", g.Title, commandList(c, g.ID))
	}
	if others := commandList(c, ""); others != "" {
		title := "Available Commands"
		if len(c.Groups()) > 0 {
			title = "Other Commands"
		}
		fmt.Fprintf(&out, "\n%s:\n%s", title, others)
	}
	for _, flags := range []struct{ title, text string }{
		{"Flags", c.LocalFlags().FlagUsagesWrapped(Columns)}, {"Global Flags", c.InheritedFlags().FlagUsagesWrapped(Columns)},
	} {
		if strings.TrimSpace(flags.text) != "" {
			fmt.Fprintf(&out, "\n%s:\n%s\n", flags.title, strings.TrimRight(flags.text, " \n"))
		}
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&out, "\n%s\n", Wrap(fmt.Sprintf("Use \"%s [command] --help\" for more information about a command.", c.CommandPath()), ""))
	}
	return out.String()
}

// continueLines breaks command lines that are too long as a shell reads them, with a backslash at the end.
func continueLines(example string) string {
	var lines []string
	for _, line := range strings.Split(example, "\n") {
		now := line[:len(line)-len(strings.TrimLeft(line, " "))]
		for i, word := range strings.Fields(line) {
			if i > 0 && len(now)+len(word)+3 > Columns {
				lines = append(lines, now+" \\")
				now = "      " + word
				continue
			}
			if i > 0 {
				now += " "
			}
			now += word
		}
		lines = append(lines, now)
	}
	return strings.Join(lines, "\n")
}

// commandList has a line for each command of a group, broken where its text is too long.
func commandList(c *cobra.Command, group string) string {
	all := slices.DeleteFunc(slices.Clone(c.Commands()), func(b *cobra.Command) bool { return !b.IsAvailableCommand() && b.Name() != "help" })
	width := 0
	for _, b := range all {
		width = max(width, len(b.Name()))
	}
	var out strings.Builder
	for _, b := range all {
		if b.GroupID != group {
			continue
		}
		fmt.Fprintf(&out, "%s\n", breakLine(fmt.Sprintf("  %-*s  %s", width, b.Name(), b.Short)))
	}
	return out.String()
}
