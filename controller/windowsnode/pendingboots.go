package windowsnode

import (
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/published"
)

// PendingBoots returns why Windows waits for a boot of a host, by the report of its agent. Reasons that are not known
// are left out: a host may report any text.
func PendingBoots(r published.Report) []bundle.BootReason {
	if r.Facts == nil || len(r.Facts.PendingBoots) == 0 {
		return nil
	}
	var known []bundle.BootReason
	for _, reason := range bundle.BootReasons() {
		if slices.Contains(r.Facts.PendingBoots, reason) {
			known = append(known, reason)
		}
	}
	return known
}

// JoinBoots returns a set of reasons as one text, which is the same for the same set.
func JoinBoots(reasons []bundle.BootReason) string {
	var texts []string
	for _, r := range reasons {
		texts = append(texts, string(r))
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), ",")
}

// SplitBoots returns the reasons of a text of JoinBoots. Those that are not known are left out.
func SplitBoots(text string) []bundle.BootReason {
	var reasons []bundle.BootReason
	for _, t := range strings.Split(text, ",") {
		if r := bundle.BootReason(t); r.IsKnown() {
			reasons = append(reasons, r)
		}
	}
	return reasons
}

// DescribeBoots lists for people what Windows waits for.
func DescribeBoots(reasons []bundle.BootReason) string {
	var texts []string
	for _, r := range reasons {
		texts = append(texts, r.Describe())
	}
	return strings.Join(texts, ", ")
}
