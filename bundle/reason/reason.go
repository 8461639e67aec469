// Package reason is the closed list of the reasons that findings give (bundle.Finding.Reason), each with its severity, its
// meaning and what to do. docs/findings.md is made from it. It decides nothing: whoever makes a finding chooses the reason.
package reason

import (
	"fmt"
	"slices"
	"strings"
)

// Entry explains one reason.
type Entry struct {
	Reason string
	// Severity is that of the findings, or both where it depends on the case.
	Severity string
	// Meaning is one sentence or two, Fix what the user does about it.
	Meaning, Fix string
}

// Severities, as the documentation prints them.
const (
	isError        = "error"
	isWarning      = "warning"
	isInfo         = "info"
	errorOrWarning = "error or warning"
	warningOrInfo  = "warning or info"
)

// IsAcceptable reports whether some of the findings can be accepted. What would stop all pods cannot, although the operator, which holds it, has it as a warning.
func (e Entry) IsAcceptable() bool { return e.Severity != isError && e.Reason != NodeImageUnreachable }

// Area is a group of reasons.
type Area struct {
	Title   string
	Entries []Entry
}

// Areas returns every reason once, in the order of the documentation.
func Areas() []Area {
	return []Area{
		{"Reading the inputs", inputs()},
		{"The cluster", cluster()},
		{"Certificates and secrets", secrets()},
		{"Nodes", nodes()},
		{"What Windows nodes ignore", ignored()},
		{"Hosts before they join", hosts()},
		{"Images and mirrors", images()},
		{"The payload", executables()},
		{"MachineSets", machineSets()},
	}
}

// OfInputs returns the entries of findings about the inputs of nodes. Those of a host before it joins and of a MachineSet are of commands that read no settings.
func OfInputs() []Entry {
	return slices.Concat(inputs(), cluster(), secrets(), nodes(), ignored(), images(), executables())
}

// IsReportedByAll reports whether all programs that read the inputs give the findings of a reason, by what its entry says.
func IsReportedByAll(reason string) bool {
	return !slices.ContainsFunc(OfInputs(), func(e Entry) bool {
		return e.Reason == reason && (strings.Contains(e.Meaning, "Only the ") || strings.Contains(e.Meaning, "Only `wmco "))
	})
}

// Markdown is docs/findings.md.
func Markdown() string {
	var out strings.Builder
	out.WriteString(`# Findings

Generated from the table (` + "`bundle/reason`, `make generate`" + `). A finding says what is wrong with an input, or worth knowing about it. ` + "`wmco validate`" + `
prints every finding; ` + "`-o json`" + ` prints them for programs, which may branch on the reason.

* **error**: the inputs are refused. Nothing is written, and what is published stays published.
* **warning**: the command goes on, but something is not as the inputs ask for.
* **info**: nothing is wrong.

Warnings and infos can be [accepted](operations.md#accepted-findings).
`)
	for _, area := range Areas() {
		fmt.Fprintf(&out, "\n## %s\n\n| reason | severity | meaning | fix |\n|---|---|---|---|\n", area.Title)
		for _, e := range slices.SortedFunc(slices.Values(area.Entries), func(a, b Entry) int { return strings.Compare(a.Reason, b.Reason) }) {
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", e.Reason, e.Severity, cell(e.Meaning), cell(e.Fix))
		}
	}
	return out.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
