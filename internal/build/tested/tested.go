// Package tested makes docs/tested.md: what was tested on which platform, with the results in golden/real.
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

// SummarizeResults is what has run on real Windows, in one sentence. The README has it.
func SummarizeResults(results []result.Result) string {
	if len(results) == 0 {
		return "This project has never run on real Windows."
	}
	var builds []string
	for _, r := range results {
		builds = append(builds, r.System.OSBuild)
	}
	return "The self-test has run on real Windows (" + strings.Join(builds, ", ") + ")."
}

// run is one row of what was tested on which platform.
type run struct{ platform, what, how, when, result string }

// runs are what was tested without a real Windows. Whoever runs one writes its day and its result.
func runs() []run {
	const days = "29 November 2026"
	return []run{
		{"AWS, Azure, Google Cloud, vSphere, Nutanix", "bundles, MachineSets and user data, compared with goldens; no cloud was used", "`make test`", days, "passed"},
		{"Kubernetes 1.36, with simulated Windows hosts", "operator, node agent and command line, with real SSH servers and a real API server", "`make test`, in each CI run", days, "5,541 passed, 19 skipped"},
		{"the same, with the controllers of Kubernetes", "nodes join, change, are adopted and removed", "`make test-tracers`, in each CI run", days, "35 passed"},
		{"Kubernetes 1.31", "nodes join, change and leave", "`make test-old`", "27 November 2026", "passed"},
		{"Kubernetes 1.33, and an API server that is updated from 1.31", "the same", "`make test-old`, in `make ci-full`", "no run is recorded", "-"},
		{"OLM", "installs, upgrades and removes the operator, and takes over from the existing one", "`make test-olm`", "27 November 2026", "passed"},
		{"kubelet, kube-proxy, containerd 2.4.2 and 1.7, CNI", "their own code reads the rendered files", "`make test-modules`, in each CI run", days, "passed"},
		{"kubelets of 1.31 and 1.36", "their own validation, 13,000 settings", "`make minors`", "28 November 2026", "passed; 1.32 to 1.35 and 1.37 were not compared"},
		{"Wine 10", "`wmco-node.exe` as a service, its Windows APIs, the self-test", "`make test-wine`, in CI where its code changes", days, "76 passed, 4 skipped"},
		{"the Windows executables", "built from source, the versions of [payload.md](payload.md)", "`make payload payload-check`", days, "built: all but the credential providers of Azure and Google Cloud, which were built alone; the second build was not compared"},
		{"1,000 and 5,000 simulated nodes", "a change on all of them", "`TestScale`", "29 and 27 November 2026", "[scale.md](scale.md)"},
	}
}

// ResultsPage is docs/tested.md.
func ResultsPage(results []result.Result) string {
	var out strings.Builder
	fmt.Fprintf(&out, `# What was tested

Generated (`+"`internal/build/tested`, `golden/real`, `make generate`"+`). %s [first-contact.md](first-contact.md) has the commands for your first machine, and how to
send a result.

## Platforms

| platform | what ran | by | last seen | result |
|---|---|---|---|---|
`, SummarizeResults(results))
	const windows, selfTest = "Windows Server 2025, 2022, 2019", "`wmco selftest`, or the workflow `windows` of a fork (2025, 2022)"
	for _, r := range results {
		day, _, _ := strings.Cut(r.Started, "T")
		counts := fmt.Sprintf("%d passed, %d failed, %d skipped", r.Passed, r.Failed, r.Skipped)
		out.WriteString(tableRow(run{"Windows " + r.System.OSBuild + ", " + r.System.Edition, "the self-test", selfTest, day, counts}))
	}
	if len(results) == 0 {
		out.WriteString(tableRow(run{windows, "the self-test, preflight, a node with a stand-in API server", selfTest, "never", "not run"}))
	}
	for _, r := range runs() {
		out.WriteString(tableRow(r))
	}
	writeClauses(&out)
	for _, r := range results {
		fmt.Fprintf(&out, "\n### Not passed on %s\n\n| clause | result |\n|---|---|\n", r.System.OSBuild)
		eachClause(func(name, clause string) {
			if status := statusOf(r, clause); status != string(result.StatusPassed) {
				fmt.Fprintf(&out, "| %s | %s |\n", name, status)
			}
		})
	}
	return out.String()
}

// onWine is why a clause is skipped under Wine, "" where it is not.
func onWine(clause string) string {
	why, _, _ := strings.Cut(thismachine.SkipsOnWine()[clause], thismachine.WindowsDoes)
	return why
}

// reasonsOnWine are the reasons for which clauses are skipped under Wine, in the order of the contract.
func reasonsOnWine() []string {
	var reasons []string
	eachClause(func(_, clause string) {
		if why := onWine(clause); why != "" && !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	})
	return reasons
}

// writeClauses writes what the contract is about, and the clauses that are skipped under Wine, by reason.
func writeClauses(out *strings.Builder) {
	var parts []string
	clauses := 0
	for _, part := range selftest.Parts() {
		parts = append(parts, part.Name)
		clauses += len(part.Clauses)
	}
	fmt.Fprintf(out, `
## Clauses

What the node agent relies on: %d clauses, of %s. `+"`wmco selftest`"+` tests and prints them. The simulated hosts pass all but three about a shutdown, Wine 10 all but these:

| not under Wine | why, and the test in its place |
|---|---|
`, clauses, strings.Join(parts, ", "))
	for _, why := range reasonsOnWine() {
		var names []string
		eachClause(func(_, clause string) {
			if onWine(clause) == why {
				names = append(names, strings.ReplaceAll(clause, "|", `\|`))
			}
		})
		fmt.Fprintf(out, "| %s | %s |\n", strings.Join(names, "; "), why)
	}
}

// eachClause calls a function with the name of each clause in a cell of a table, and with the clause.
func eachClause(call func(name, clause string)) {
	for _, part := range selftest.Parts() {
		for _, c := range part.Clauses {
			call(part.Name+": "+strings.ReplaceAll(c.Name, "|", `\|`), c.Name)
		}
	}
}

func tableRow(r run) string {
	return "| " + strings.Join([]string{r.platform, r.what, r.how, r.when, r.result}, " | ") + " |\n"
}

func statusOf(r result.Result, clause string) string {
	i := slices.IndexFunc(r.Clauses, func(o result.Outcome) bool { return o.Clause == clause })
	if i < 0 {
		return "not asked"
	}
	return string(r.Clauses[i].Status)
}
