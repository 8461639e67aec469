package main

import (
	"io"
	"strings"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/controller/fleet"
	"wmco/internal/cli"
)

// printDiff prints a review: lines that are added are green, those that are removed red, places in files cyan.
func (p palette) printDiff(w io.Writer, text string) error {
	if text = wrapReview(text, terminalColumns(w)); !p.on {
		return cli.PrintText(w, text)
	}
	var safe strings.Builder // what nodes and objects say is escaped before any colour is added
	if err := cli.PrintText(&safe, text); err != nil {
		return err
	}
	var out strings.Builder
	for line := range strings.Lines(safe.String()) {
		text, isWhole := strings.CutSuffix(line, "\n")
		if code := diffColor(text); code != "" {
			text = "\x1b[" + code + "m" + text + "\x1b[0m"
		}
		out.WriteString(text)
		if isWhole {
			out.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// diffColor is the colour of a line: entries and findings stand at the left, the lines of a difference six characters
// further.
func diffColor(line string) string {
	within, isWithin := strings.CutPrefix(line, "      ")
	switch {
	case isWithin && strings.HasPrefix(within, "+"):
		return green
	case isWithin && strings.HasPrefix(within, "-"):
		return red
	case isWithin && strings.HasPrefix(within, "@@"):
		return cyan
	case isWithin:
		return ""
	case strings.HasPrefix(line, "  + "), strings.HasPrefix(line, "  ~ "), strings.HasPrefix(line, "  - "):
		return bold
	case strings.HasPrefix(line, "+ "+string(bundle.SeverityError)):
		return red
	case strings.HasPrefix(line, "+ "+string(bundle.SeverityWarning)):
		return yellow
	}
	return ""
}

// printStates prints the table of nodes. The state of each is coloured after the columns are aligned: a colour has no
// width.
func (p palette) printStates(w io.Writer, table string, now fleet.Fleet) error {
	lines := strings.SplitAfter(table, "\n")
	for i, r := range now.Nodes {
		code := stateColor(r)
		if !p.on || code == "" || i+1 >= len(lines) {
			continue
		}
		name, rest, _ := strings.Cut(lines[i+1], " ")
		gap := rest[:len(rest)-len(strings.TrimLeft(rest, " "))]
		lines[i+1] = name + " " + gap + "\x1b[" + code + "m" + string(r.State) + "\x1b[0m" + strings.TrimPrefix(rest, gap+string(r.State))
	}
	_, err := io.WriteString(w, strings.Join(lines, ""))
	return err
}

func stateColor(r fleet.Row) string {
	switch r.State {
	case nodestate.Updated:
		if !r.IsReady() {
			return yellow
		}
		return green
	case nodestate.Degraded, nodestate.NotReporting, nodestate.Refused:
		return red
	case nodestate.Waiting:
		return yellow
	case nodestate.Stale, nodestate.Updating, nodestate.Joining, nodestate.Removing:
	}
	return ""
}
