package pages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wmco/bundle/reason"
)

// reasonsPage is reasons.md: a heading for each reason, to which Events, conditions and `wmco explain` of a release
// link.
func reasonsPage() string {
	all := reason.All()
	slices.SortStableFunc(all, func(a, b reason.Entry) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Reason), strings.ToLower(b.Reason)), strings.Compare(a.Severity, b.Severity))
	})
	var out strings.Builder
	out.WriteString("# Reasons\n\nGenerated from the table (`bundle/reason`, `make generate`), as is what `wmco explain` prints: the reasons of findings, of hosts, nodes and conditions in the status, and of Events.\n" +
		"[findings.md](findings.md) lists those of findings by area; [joining.md](joining.md#events-and-conditions) and [operations.md](operations.md) say more.\n")
	for i, e := range all {
		if i == 0 || all[i-1].Reason != e.Reason { // a finding and a condition can have one reason
			fmt.Fprintf(&out, "\n## %s\n", e.Reason)
		}
		out.WriteString("\n")
		if e.Severity != "" {
			fmt.Fprintf(&out, "Finding (%s). ", e.Severity)
		}
		fmt.Fprintf(&out, "%s\n\nFix: %s\n", e.Meaning, e.Fix)
	}
	return out.String()
}

// findingsPage is findings.md: the reasons of findings by area and severity, with links to what they mean.
func findingsPage() string {
	var out strings.Builder
	out.WriteString(`# Findings

Generated from the table (` + "`bundle/reason`, `make generate`" + `). A finding says what is wrong with an input, or worth knowing about it. ` + "`wmco validate`" + `
prints every finding; ` + "`-o json`" + ` prints them for programs, which may branch on the reason. What each means and what to do is in [reasons.md](reasons.md),
and printed by ` + "`wmco explain REASON`" + `.

* **error**: the inputs are refused. Nothing is written, and what is published stays published.
* **warning**: the command goes on, but something is not as the inputs ask for.
* **info**: nothing is wrong.

Warnings and infos can be [accepted](operations.md#accepted-findings).
`)
	for _, area := range reason.Areas() {
		links := map[string][]string{}
		for _, e := range area.Entries {
			links[e.Severity] = append(links[e.Severity], fmt.Sprintf("[`%s`](reasons.md#%s)", e.Reason, strings.ToLower(e.Reason)))
		}
		fmt.Fprintf(&out, "\n## %s\n\n", area.Title)
		for _, severity := range slices.Sorted(maps.Keys(links)) {
			fmt.Fprintf(&out, "* %s: %s\n", severity, strings.Join(slices.Sorted(slices.Values(links[severity])), ", "))
		}
	}
	return out.String()
}
