package pages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wmco/bundle/reason"
)

// reasonsPage is reasons.md: an index of the findings by area, and a heading for each reason, to which Events, conditions and `wmco explain` of a release link.
func reasonsPage() string {
	all := reason.All()
	slices.SortStableFunc(all, func(a, b reason.Entry) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Reason), strings.ToLower(b.Reason)), strings.Compare(a.Severity, b.Severity))
	})
	var out strings.Builder
	out.WriteString(`# Reasons

Reasons of findings, of hosts, nodes and conditions in the [status](status.md), and of Events. ` + "`wmco explain REASON`" + ` prints the same. A reason without a fix needs no action.
Generated from ` + "`bundle/reason`" + ` (` + "`make generate`" + `).

## Findings

` + "`wmco validate`" + ` prints the findings of the inputs; ` + "`-o json`" + ` is for programs, which may branch on the reason. You can [accept](held-changes.md#accepted-findings) warnings and infos.

* **error**: the inputs are refused. Nothing is written, and nodes keep their published bundles.
* **warning**: the inputs are applied, but not exactly as written.
* **info**: nothing is wrong.
`)
	out.WriteString(indexFindings())
	for i, e := range all {
		if i == 0 || all[i-1].Reason != e.Reason { // a finding and a condition can have one reason
			fmt.Fprintf(&out, "\n## %s\n", e.Reason)
		}
		out.WriteString("\n")
		if e.Severity != "" {
			fmt.Fprintf(&out, "**%s%s.** ", strings.ToUpper(e.Severity[:1]), e.Severity[1:])
		}
		fmt.Fprintf(&out, "%s\n", e.Meaning)
		if e.NeedsAction() {
			fmt.Fprintf(&out, "\nFix: %s\n", e.Fix)
		}
	}
	return out.String()
}

// indexFindings lists the reasons of findings by area and severity, with links to their headings.
func indexFindings() string {
	var out strings.Builder
	for _, area := range reason.Areas() {
		links := map[string][]string{}
		for _, e := range area.Entries {
			links[e.Severity] = append(links[e.Severity], fmt.Sprintf("[`%s`](#%s)", e.Reason, strings.ToLower(e.Reason)))
		}
		fmt.Fprintf(&out, "\n### %s\n\n", area.Title)
		for _, severity := range slices.Sorted(maps.Keys(links)) {
			fmt.Fprintf(&out, "* %s: %s\n", severity, strings.Join(slices.Sorted(slices.Values(links[severity])), ", "))
		}
	}
	return out.String()
}
