// Package tested makes docs/tested.md: what was seen on which Windows, from the results in golden/real.
package tested

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wmco/applier/selftest"
	"wmco/applier/selftest/result"
	"wmco/applier/selftest/thismachine"
)

// ReadResults returns the results in a folder, by build.
func ReadResults(folder string) ([]result.Result, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []result.Result
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var r result.Result
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b result.Result) int { return strings.Compare(a.System.OSBuild, b.System.OSBuild) })
	return all, nil
}

// SummarizeResults says in one sentence what has run on a real Windows. The README has it.
func SummarizeResults(results []result.Result) string {
	if len(results) == 0 {
		return "nothing has run on a real Windows yet."
	}
	var builds []string
	for _, r := range results {
		builds = append(builds, r.System.OSBuild)
	}
	return "the self-test has run on a real Windows (" + strings.Join(builds, ", ") + ")."
}

// ResultsPage is docs/tested.md.
func ResultsPage(results []result.Result) string {
	var out strings.Builder
	out.WriteString(`# What was seen where

Generated from the results in ` + "`golden/real` (`make generate`)" + `. Each promise of the table is a clause of the contract that the node agent
relies on, tested by ` + "`wmco-node selftest`" + `, which [first contact](first-contact.md) runs on a machine of yours. The simulated hosts, on which all else is
tested, pass it too, but for three clauses about a shutdown. Wine 10 runs the same programs; for what it cannot do the column names the test that is in its place.

`)
	fmt.Fprintf(&out, "On real machines: %s\n\n", SummarizeResults(results))
	out.WriteString("| clause | Wine 10 |")
	for _, r := range results {
		fmt.Fprintf(&out, " %s %s |", r.System.OSBuild, r.System.Edition)
	}
	out.WriteString("\n|---|---|" + strings.Repeat("---|", len(results)) + "\n")
	skips := thismachine.SkipsOnWine()
	for _, part := range selftest.Parts() {
		for _, c := range part.Clauses {
			fmt.Fprintf(&out, "| %s: %s | %s |", part.Name, strings.ReplaceAll(c.Name, "|", `\|`), onWine(skips[c.Name]))
			for _, r := range results {
				fmt.Fprintf(&out, " %s |", statusOf(r, c.Name))
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}

// onWine is the result under Wine, by why the clause is skipped there.
func onWine(skipped string) string {
	if skipped == "" {
		return string(result.StatusPassed)
	}
	why, _, _ := strings.Cut(skipped, thismachine.WindowsDoes)
	return "no: " + why
}

func statusOf(r result.Result, clause string) string {
	i := slices.IndexFunc(r.Clauses, func(o result.Outcome) bool { return o.Clause == clause })
	if i < 0 {
		return "not asked"
	}
	return string(r.Clauses[i].Status)
}
