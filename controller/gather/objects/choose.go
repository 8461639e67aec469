package objects

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"wmco/bundle"
)

// chooseOne returns one copy of each object of a path. Equal copies count once. Of copies from different times, the
// newest is chosen. Any other difference is a finding.
func chooseOne(all []parsed) ([]Object, bundle.Findings) {
	copies := make(map[identity][]parsed)
	for _, p := range all {
		copies[p.objectIdentity()] = append(copies[p.objectIdentity()], p)
	}
	var chosen []Object
	var findings bundle.Findings
	for _, id := range slices.SortedFunc(maps.Keys(copies), compareIdentities) {
		rivals := newestCopies(distinctCopies(copies[id]))
		chosen = append(chosen, rivals[0].Object)
		for _, other := range rivals[1:] {
			findings = append(findings, duplicateFinding(rivals[0].Object, other.Object))
		}
	}
	return chosen, findings
}

// distinctCopies returns the copies sorted by place, without those that equal an earlier one.
func distinctCopies(copies []parsed) []parsed {
	copies = slices.Clone(copies)
	slices.SortStableFunc(copies, func(a, b parsed) int { return comparePlaces(a.Object, b.Object) })
	seen := make(map[string]bool, len(copies))
	return slices.DeleteFunc(copies, func(p parsed) bool {
		again := seen[string(p.JSON)]
		seen[string(p.JSON)] = true
		return again
	})
}

// newestCopies returns the copies, in order, without those that are an earlier state of another. Two copies are states
// of one object if they have the same uid and resourceVersions that are numbers.
func newestCopies(copies []parsed) []parsed {
	last := make(map[string]string, len(copies))
	for _, p := range copies {
		if isNumber(p.resourceVersion) && compareNumbers(p.resourceVersion, last[p.uid]) > 0 {
			last[p.uid] = p.resourceVersion
		}
	}
	return slices.DeleteFunc(copies, func(p parsed) bool {
		return p.uid != "" && isNumber(p.resourceVersion) && compareNumbers(p.resourceVersion, last[p.uid]) < 0
	})
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// compareNumbers compares decimal numbers of any length.
func compareNumbers(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// replaceEarlier adds the objects of a later path. They replace those of earlier paths, which it returns.
func replaceEarlier(found map[identity]Object, later []Object) (earlier []Object, findings bundle.Findings) {
	for _, now := range later {
		if before, ok := found[now.objectIdentity()]; ok && !bytes.Equal(before.JSON, now.JSON) {
			earlier = append(earlier, before)
			findings = append(findings, replacedFinding(now, before))
		}
		found[now.objectIdentity()] = now
	}
	return earlier, findings
}
