package review

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	"wmco/bundle"
	"wmco/render"
)

// actionSign is how an action is written before an entry.
func actionSign(a bundle.Action) string {
	switch a {
	case bundle.ActionAdd:
		return "+"
	case bundle.ActionChange:
		return "~"
	case bundle.ActionRemove:
		return "-"
	}
	return "?"
}

// Text is the review for a terminal.
func (r Review) Text() string {
	var out strings.Builder
	if r.HasFindings() {
		fmt.Fprintf(&out, "%s\n\n%s\n", r.Summary(), r.Findings.asText())
	}
	for i, g := range r.Groups {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(
			&out, "%s\n%s: %s%s\n", joinEscaped(g.Nodes, ", "), bundle.Count(len(g.Changes), "change"), g.cost(),
			r.Findings.describeCount(),
		)
		for _, c := range g.Changes {
			fmt.Fprintf(
				&out, "\n  %s %s  [%s]%s\n", actionSign(c.Action), singleLine(string(c.Entry)),
				Cost(c.Impact, c.Restarts), causesText(c.Causes),
			)
			if note := Warning(c); note != "" {
				fmt.Fprintf(&out, "      warning: %s\n", note)
			}
			out.WriteString(indent(Unified(c), "      "))
		}
	}
	out.WriteString(r.otherNodes("\n"))
	return out.String()
}

// Warning returns what a reviewer should know about a removal.
func Warning(c bundle.Change) string {
	if c.Action != bundle.ActionRemove {
		return ""
	}
	row, _ := render.FindRow(c.Entry)
	return row.Removal
}

// otherNodes lists the nodes that are on one side only, and those that do not change.
func (r Review) otherNodes(before string) string {
	var out strings.Builder
	for _, side := range []struct {
		nodes []string
		text  string
	}{{r.Added, "new"}, {r.Removed, "gone"}, {r.Same, "no change"}} {
		if len(side.nodes) > 0 {
			fmt.Fprintf(&out, "%s: %s\n", side.text, joinEscaped(side.nodes, ", "))
		}
	}
	if out.Len() == 0 || len(r.Groups) == 0 {
		before = ""
	}
	return before + out.String()
}

// escapeName returns a name as people read it. That of a node is the name of a folder of a preview, so it may have any
// characters: what no name or address has is escaped, and can neither begin a line nor be markup.
func escapeName(name string) string {
	var out strings.Builder
	for _, c := range []byte(name) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(".-_:%", c) >= 0 {
			out.WriteByte(c)
			continue
		}
		fmt.Fprintf(&out, `\x%02x`, c)
	}
	return out.String()
}

func joinEscaped(names []string, separator string) string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = escapeName(n)
	}
	return strings.Join(all, separator)
}

func (g Group) cost() string { return Cost(g.Impact, g.Restarts) }

// Cost is an impact in words, with the services that restart.
func Cost(i bundle.Impact, restarts []string) string {
	services := singleLine(strings.Join(restarts, ", "))
	switch i {
	case bundle.ImpactNone:
		return "no restart"
	case bundle.ImpactRestart:
		if services == "" {
			return "restart"
		}
		return "restarts " + services
	case bundle.ImpactDrain:
		if services == "" {
			return "drains the node"
		}
		return "drains the node, restarts " + services
	case bundle.ImpactReboot:
		return "drains and reboots the node"
	}
	return singleLine(string(i))
}

func causesText(causes []bundle.Ref) string {
	if len(causes) == 0 {
		return ""
	}
	return "  from " + singleLine(joinRefs(causes))
}

func joinRefs(refs []bundle.Ref) string {
	names := make([]string, len(refs))
	for i, r := range refs {
		names[i] = r.String()
	}
	return strings.Join(names, ", ")
}

// Unified is the difference of a change line by line: of the text for files and environments, of the definition for
// everything else. A secret whose visible text is the same on both sides is only reported as different.
func Unified(c bundle.Change) string {
	before, after := sideText(c.Before, c.BeforeText), sideText(c.After, c.AfterText)
	if c.Secret && bytes.Equal(before, after) {
		return "(secret, masked)\n"
	}
	text := diff.Diff("before", before, "after", after)
	// The first three lines are headers with the names of the sides.
	lines := strings.SplitAfterN(string(text), "\n", 4)
	return lines[len(lines)-1]
}

// sideText is one side of a change: its contents if it has any, else its definition.
func sideText(value any, text []byte) []byte {
	if text != nil || value == nil {
		return text
	}
	data, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Appendf(nil, "%+v\n", value)
	}
	return data
}

func indent(text, prefix string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(prefix + line)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		out.WriteString("\n")
	}
	return out.String()
}
