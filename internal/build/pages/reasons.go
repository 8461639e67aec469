package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wmco/bundle/reason"
)

// reasonsPage is reasons.md: a heading for each reason, to which Events, conditions and `wmco explain` of a release link, by area.
func reasonsPage() string {
	areas := slices.Concat(reason.Areas(), reason.StatusAreas(), []reason.Area{{Title: "Events", Entries: reason.Events()}})
	entries := map[string][]reason.Entry{} // a finding and a condition can have one reason
	for _, area := range areas {
		for _, e := range area.Entries {
			if area.FixIsInFindings {
				e.Fix = ""
			}
			entries[e.Reason] = append(entries[e.Reason], e)
		}
	}
	var out strings.Builder
	out.WriteString(`# Reasons

Generated from ` + "`bundle/reason`" + ` (` + "`make generate`" + `). ` + "`wmco explain REASON`" + ` prints the same. A reason without a fix needs no action, or the finding has the whole fix.

` + "`wmco validate`" + ` prints the findings of the inputs; programs may branch on the reason (` + "`-o json`" + `). You can [accept](held-changes.md#accepted-findings) warnings and infos.

* **error**: the inputs are refused. Nothing is written, and nodes keep their published bundles.
* **warning**: the inputs are applied, but not exactly as written.
* **info**: nothing is wrong.

The others are reasons of hosts, nodes and conditions in the [status](status.md), and of Events. Settings are those of the ConfigMap windows-machine-config ([settings.md](settings.md)).
`)
	for _, area := range areas {
		fmt.Fprintf(&out, "\n## %s\n", area.Title)
		sorted := slices.SortedFunc(slices.Values(area.Entries), func(a, b reason.Entry) int { return cmp.Compare(a.Reason, b.Reason) })
		if area.Title == "Conditions" {
			sorted = writeGoodConditions(&out, sorted)
		}
		if area.FixIsInFindings {
			out.WriteString("\nEach finding has its fix; `wmco explain REASON` prints it too.\n")
		}
		for _, e := range sorted {
			writeReason(&out, entries[e.Reason])
			delete(entries, e.Reason)
		}
	}
	return out.String()
}

// writeGoodConditions lists the reasons of conditions that need no action: their names tell what they mean. It returns the others.
func writeGoodConditions(out *strings.Builder, entries []reason.Entry) []reason.Entry {
	var good []string
	others := slices.DeleteFunc(entries, func(e reason.Entry) bool {
		if e.HasFix() {
			return false
		}
		good = append(good, "`"+e.Reason+"`")
		return true
	})
	fmt.Fprintf(out, "\nNo action is needed for %s.\n", strings.Join(good, ", "))
	return others
}

// writeReason writes the heading of a reason, and what it means in each place; nothing without entries.
func writeReason(out *strings.Builder, entries []reason.Entry) {
	for i, e := range entries {
		if i == 0 {
			fmt.Fprintf(out, "\n### %s\n", e.Reason)
		}
		out.WriteString("\n")
		meaning, isOperators := e.SplitOperatorOnly()
		switch {
		case isOperators:
			fmt.Fprintf(out, "**%s%s, operator only.** ", strings.ToUpper(e.Severity[:1]), e.Severity[1:])
		case e.Severity != "":
			fmt.Fprintf(out, "**%s%s.** ", strings.ToUpper(e.Severity[:1]), e.Severity[1:])
		}
		fmt.Fprintf(out, "%s\n", meaning)
		if e.HasFix() {
			fmt.Fprintf(out, "\nFix: %s\n", e.Fix)
		}
	}
}
