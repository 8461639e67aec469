package selftest

import (
	"fmt"
	"slices"
	"strings"

	"wmco/applier/selftest/result"
)

// Difference is a clause in which a real Windows and a fake of it do not agree.
type Difference struct{ Clause, Text string }

func (d Difference) String() string { return fmt.Sprintf("%q: %s", d.Clause, d.Text) }

// Compare returns where a fake does not do what a real Windows did. A clause that one of them skipped does not count; one
// that the contract does not have any longer has to be renamed in the result, or removed from it.
func Compare(windows, fake result.Result) []Difference {
	var all []Difference
	for _, r := range windows.Clauses {
		i := slices.IndexFunc(fake.Clauses, func(o result.Outcome) bool { return o.Clause == r.Clause })
		if i < 0 {
			all = append(all, Difference{r.Clause, "the contract has no such clause"})
			continue
		}
		f := fake.Clauses[i]
		if r.Status == result.StatusSkipped || f.Status == result.StatusSkipped || r.Status == f.Status {
			continue
		}
		all = append(all, Difference{r.Clause,
			fmt.Sprintf("%s on Windows %s, %s on the fake: %s", r.Status, windows.System.OSBuild, f.Status, whyOf(r, f))})
	}
	return all
}

// whyOf returns what the failing one of two outcomes has seen.
func whyOf(outcomes ...result.Outcome) string {
	var texts []string
	for _, o := range outcomes {
		for _, f := range o.Failures {
			texts = append(texts, fmt.Sprintf("expected %s, seen %s", f.Expected, f.Seen))
		}
	}
	return strings.Join(texts, "; ")
}
