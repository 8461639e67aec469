package windowsnode

import (
	"slices"

	"wmco/bundle"
	"wmco/bundle/published"
)

// PendingBoots returns why Windows waits for a boot of a host, by the report of its agent. Reasons that are not known are left out: a host may
// report any text.
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
