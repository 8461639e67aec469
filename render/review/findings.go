package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/render"
)

// Findings are those about the inputs that one side has and the other one has not.
type Findings struct {
	Added   bundle.Findings `json:"added"`
	Removed bundle.Findings `json:"removed"`
	// Accepted are those that the new side accepts, and the earlier one has not or does not accept.
	Accepted bundle.Findings `json:"accepted"`
	// Refused are those of the added ones for which the change is refused.
	Refused bundle.Findings `json:"refused"`
}

// mostFindings is how many findings of one kind of change a text shows. JSON has all.
const mostFindings = 20

// compareFindings compares the findings of two sides.
func compareFindings(before, after []Node) Findings {
	was, is := findingsOf(before), findingsOf(after)
	return Findings{
		Added: render.StopsAsErrors(withoutKnown(is.Open(), was.Open())), Removed: withoutKnown(was, is),
		Accepted: withoutKnown(is.Accepted(), was.Accepted()), Refused: bundle.Findings{},
	}
}

// findingsOf returns each finding of the nodes once.
func findingsOf(nodes []Node) bundle.Findings {
	var all bundle.Findings
	for _, n := range nodes {
		for _, f := range n.Findings {
			if !isAboutSources(f) {
				all = append(all, f)
			}
		}
	}
	return all.Sorted()
}

// isAboutSources reports whether a finding is about where objects were read from, or what could not be read, which a
// change is not about.
func isAboutSources(f bundle.Finding) bool {
	return f.Reason == reason.Replaced || f.Reason == reason.DefaultsAssumed || f.Reason == reason.SigningKeysUnknown
}

// statement is the content of a finding, wherever the object is written and at whichever index of a list.
type statement struct {
	severity                 bundle.Severity
	reason, object, at, node string
	message                  string
}

func statementOf(f bundle.Finding) statement {
	s := statement{severity: f.Severity, reason: f.Reason, object: f.Object.String(), node: f.Node, message: f.Message}
	if s.object == "" {
		s.at = f.Object.Source
	}
	return s
}

// withoutKnown returns the findings that the others do not have: of several that say the same, those that are more.
func withoutKnown(findings, others bundle.Findings) bundle.Findings {
	known := map[statement]int{}
	for _, f := range others {
		known[statementOf(f)]++
	}
	left := bundle.Findings{}
	for _, f := range findings {
		if s := statementOf(f); known[s] > 0 {
			known[s]--
			continue
		}
		left = append(left, f)
	}
	return left
}

// Refuse returns the review of a change that is refused for the findings that it adds of a severity or a higher one.
func (r Review) Refuse(least bundle.Severity) Review {
	r.Findings.Refused = r.Findings.Added.AtLeast(least)
	return r
}

// Refusal returns in one sentence for which findings a change is refused, and how to go on: "the change adds 1 warning:
// NodeNameMismatch". It is empty where it is not.
func (f Findings) Refusal() (why, goOn string) {
	if len(f.Refused) == 0 {
		return "", ""
	}
	var counts, names []string
	for _, s := range []bundle.Severity{bundle.SeverityError, bundle.SeverityWarning, bundle.SeverityInfo} {
		if n := len(f.Refused.Of(s)); n > 0 {
			counts = append(counts, bundle.Count(n, string(s)))
		}
	}
	for _, x := range f.Refused {
		if name := escapeName(x.Reason); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	goOn = "fix what they name, or accept them with a reason and an owner: acceptedFindings in golden.yaml or windows-machine-config"
	if f.Refused.Refused() {
		goOn = "fix what they name: an error cannot be accepted"
	}
	return "the change adds " + strings.Join(counts, ", ") + ": " + strings.Join(names, ", "), goOn
}

// Summary is the change in one sentence: "6 Windows nodes change without a restart; 1 new finding: the pause image cannot
// be pulled".
func (r Review) Summary() string {
	parts := []string{r.describeChanges()}
	for _, other := range []struct {
		nodes []string
		text  string
	}{{r.Added, "new"}, {r.Removed, "gone"}} {
		if n := len(other.nodes); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, other.text))
		}
	}
	if added := r.Findings.Added; len(added) > 0 {
		text := bundle.Count(len(added), "new finding")
		if worst := added.Sorted()[0]; worst.Severity != bundle.SeverityInfo {
			text += ": " + singleLine(worst.Message)
		}
		parts = append(parts, text)
	}
	if n := len(r.Findings.Accepted); n > 0 {
		parts = append(parts, bundle.Count(n, "finding")+" accepted")
	}
	if n := len(r.Findings.Removed); n > 0 {
		parts = append(parts, bundle.Count(n, "finding")+" resolved")
	}
	return strings.Join(parts, "; ")
}

// describeChanges returns how many nodes change and the impact; with several impacts, how many nodes have each.
func (r Review) describeChanges() string {
	nodes, byCost, costs := 0, map[string]int{}, []string(nil)
	for _, g := range r.Groups {
		nodes += len(g.Nodes)
		if byCost[g.cost()] == 0 {
			costs = append(costs, g.cost())
		}
		byCost[g.cost()] += len(g.Nodes)
	}
	switch {
	case nodes == 0:
		return "no Windows node changes"
	case len(costs) > 1:
		for i, c := range costs {
			costs[i] = fmt.Sprintf("%s (%d)", c, byCost[c])
		}
	}
	verb := "change"
	if nodes == 1 {
		verb = "changes"
	}
	text := ": " + strings.Join(costs, ", ")
	if len(costs) == 1 && costs[0] == Cost(bundle.ImpactNone, nil) {
		text = " without a restart"
	}
	return bundle.Count(nodes, "Windows node") + " " + verb + text
}

// describeCount is how many findings the change adds that are more than information, as the end of a line: ", 1 new
// warning".
func (f Findings) describeCount() string {
	var text string
	for _, severity := range []bundle.Severity{bundle.SeverityError, bundle.SeverityWarning} {
		if n := len(f.Added.Of(severity)); n > 0 {
			text += ", " + bundle.Count(n, "new "+string(severity))
		}
	}
	return text
}

// asText is the findings for a terminal: those that are added, then those that are removed.
//
//   - warning  NodeImageUnreachable  Image/cluster spec.registrySources
//     no pod can start
//     fix: allow its registry
func (f Findings) asText() string {
	return findingsText("+", f.Added) + findingsText("=", f.Accepted) + findingsText("-", f.Removed)
}

func findingsText(sign string, findings bundle.Findings) string {
	var out strings.Builder
	const margin = "           "
	for _, f := range findings[:min(mostFindings, len(findings))] {
		fmt.Fprintf(
			&out, "%s %-7s  %s%s\n%s%s\n", sign, escapeName(string(f.Severity)), escapeName(f.Reason),
			prefixLines("  ", singleLine(findingSubject(f))), margin, singleLine(f.Message),
		)
		if label, text := nextStep(f); text != "" && sign != "-" {
			fmt.Fprintf(&out, "%s%s: %s\n", margin, singleLine(label), singleLine(text))
		}
	}
	if n := len(findings) - mostFindings; n > 0 {
		fmt.Fprintf(&out, "%s and %s: %s\n", sign, bundle.Count(n, "more finding"), kindsOf(findings[mostFindings:], escapeName))
	}
	return out.String()
}

// kindsOf counts findings by severity and reason, so that those which a text does not show are no surprise: "30 warning
// A, 1 info B".
func kindsOf(findings bundle.Findings, show func(string) string) string {
	var kinds []string
	count := map[string]int{}
	for _, f := range findings {
		kind := escapeName(string(f.Severity)) + " " + show(f.Reason)
		if count[kind]++; count[kind] == 1 {
			kinds = append(kinds, kind)
		}
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", count[kind], kind)
	}
	return strings.Join(kinds, ", ")
}

// nextStep is what to do about a finding, or why it is accepted, with the label in front of it.
func nextStep(f bundle.Finding) (label, text string) {
	if f.IsAccepted() {
		return "accepted by " + f.Accepted.Owner, f.Accepted.Reason
	}
	return "fix", f.Fix
}

// findingSubject is the node, the object and the field of a finding, as far as it has them.
func findingSubject(f bundle.Finding) string {
	var parts []string
	if f.Node != "" && f.Node != f.Object.Name {
		parts = append(parts, f.Node)
	}
	parts = append(parts, cmp.Or(f.Object.String(), f.Object.Source), f.Field)
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}

// singleLine is a text without line breaks: text of an input cannot look like a line of the review.
func singleLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func prefixLines(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// asMarkdown is the findings as the first part of a comment.
func (f Findings) asMarkdown() string {
	var out strings.Builder
	for _, side := range []struct {
		title    string
		findings bundle.Findings
		isThere  bool
	}{{"New findings", f.Added, true}, {"Accepted findings", f.Accepted, true}, {"Resolved findings", f.Removed, false}} {
		if len(side.findings) == 0 {
			continue
		}
		fmt.Fprintf(&out, "**%s**\n\n", side.title)
		for _, x := range side.findings[:min(mostFindings, len(side.findings))] {
			fmt.Fprintf(
				&out, "* **%s** `%s`%s: %s", escapeName(string(x.Severity)), escapeName(x.Reason),
				prefixLines(" ", codeSpan(findingSubject(x))), codeSpan(x.Message),
			)
			if label, text := nextStep(x); text != "" && side.isThere {
				fmt.Fprintf(&out, "<br>%s: %s", wordsOrCode(label), codeSpan(text))
			}
			out.WriteString("\n")
		}
		if n := len(side.findings) - mostFindings; n > 0 {
			fmt.Fprintf(&out, "* and %d more: %s\n", n, kindsOf(side.findings[mostFindings:], codeSpan))
		}
		out.WriteString("\n")
	}
	return out.String()
}
