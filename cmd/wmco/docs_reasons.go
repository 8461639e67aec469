package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wmco/bundle/reason"
)

// reasonDocs is the page with a heading for each reason, to which Events, conditions and `wmco explain` of a release link.
func reasonDocs() string {
	var all []explanation
	for _, area := range reason.Areas() {
		for _, e := range area.Entries {
			all = append(all, explanation{Reason: e.Reason, Severity: e.Severity, Meaning: e.Meaning, Fix: e.Fix})
		}
	}
	for _, r := range append(statusReasons(), eventReasons()...) {
		all = append(all, explanation{Reason: r.name, Meaning: r.meaning, Fix: r.fix})
	}
	slices.SortFunc(all, func(a, b explanation) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Reason), strings.ToLower(b.Reason)), strings.Compare(a.Severity, b.Severity))
	})
	var out strings.Builder
	out.WriteString("# Reasons\n\nGenerated from what `wmco explain` says (`make generate`): the reasons of findings, of hosts, nodes and conditions in the status, and of Events.\n" +
		"[findings.md](findings.md) has those of findings by area, [joining.md](joining.md#events-and-conditions) and [operations.md](operations.md) say more.\n")
	for i, x := range all {
		if i == 0 || all[i-1].Reason != x.Reason { // a finding and a condition can have one reason
			fmt.Fprintf(&out, "\n## %s\n", x.Reason)
		}
		out.WriteString("\n")
		if x.Severity != "" {
			fmt.Fprintf(&out, "Finding (%s). ", x.Severity)
		}
		fmt.Fprintf(&out, "%s\n\nFix: %s\n", x.Meaning, x.Fix)
	}
	return out.String()
}
