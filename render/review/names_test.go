package review

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

// named is a review in which a text stands wherever a preview, whose files and folders any user may have written, has one.
func named(text string) Review {
	f := bundle.Finding{
		Severity: bundle.Severity(text), Reason: text, Message: text, Fix: text, Field: text, Node: text,
		Object: bundle.Ref{Kind: text, Namespace: text, Name: text, Source: text},
	}
	change := bundle.Change{
		Entry: bundle.EntryID("file " + text), Action: bundle.ActionChange, Impact: bundle.Impact(text), Restarts: []string{text}, Causes: []bundle.Ref{{Kind: text, Name: text}},
		Before: "a", After: "b",
	}
	restart := change
	restart.Impact = bundle.ImpactRestart
	return Review{
		Findings: Findings{Added: bundle.Findings{f}, Removed: bundle.Findings{f}}, Same: []string{text}, Added: []string{text}, Removed: []string{text, text, text, text},
		Groups: []Group{
			{Nodes: []string{text}, Impact: change.Impact, Restarts: []string{text}, Changes: bundle.Changes{change}},
			{Nodes: []string{text, text, text, text}, Impact: bundle.ImpactDrain, Restarts: []string{text}, Changes: bundle.Changes{restart}},
		},
	}
}

// summaries are the lines of a comment that are HTML, in which there is no Markdown.
var summaries = regexp.MustCompile(`(?m)^<details><summary>.*$`)

// outsideCode is what of a comment is Markdown: code ends at as many backticks as it begins with (CommonMark 6.1).
func outsideCode(text string) string {
	var out strings.Builder
	for text = summaries.ReplaceAllString(text, ""); ; {
		before, rest, found := strings.Cut(text, "`")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		after := strings.TrimLeft(rest, "`")
		mark := strings.Repeat("`", 1+len(rest)-len(after))
		end := regexp.MustCompile("(^|[^`])" + mark + "([^`]|$)").FindStringIndex(after)
		if end == nil {
			out.WriteString(mark)
			text = after
			continue
		}
		text = strings.TrimLeft(after[end[0]+1:], "`")
	}
}

// TestNothingInAPreviewCanForgeALine: what a folder, a file or a record of a preview is called begins no line of a review, and is no markup of a
// comment.
func TestNothingInAPreviewCanForgeALine(t *testing.T) {
	const hostile = "x`\n\n### Windows nodes\r\n\nNo change on 30 nodes.\u2028<!--\v| y |\n![a](https://example.com) @team\n```\n"
	good, bad := named("win-a"), named(hostile)
	for name, write := range map[string]func(Review) string{"text": Review.Text, "markdown": Review.Markdown, "summary": Review.Summary} {
		got := write(bad)
		if diff := cmp.Diff(strings.Count(write(good), "\n"), strings.Count(got, "\n")); diff != "" || strings.ContainsAny(got, "\r\v\u2028") {
			t.Errorf("%s: lines (-want +got):\n%s%s", name, diff, got)
		}
		if name == "markdown" {
			got = outsideCode(got)
		}
		if name == "markdown" && (strings.Contains(got, "<!--") || strings.Contains(got, "[a](") || strings.Contains(got, "@team")) {
			t.Errorf("markup:\n%s", got)
		}
	}
	ours := strings.NewReplacer("<details>", "", "<summary>", "", "</summary>", "", "<code>", "", "</code>", "")
	for _, summary := range summaries.FindAllString(bad.Markdown(), -1) {
		if strings.Contains(ours.Replace(summary), "<") {
			t.Errorf("HTML of others: %s", summary)
		}
	}
	for i, row := range strings.Split(bad.Markdown(), "\n") {
		if strings.HasPrefix(row, "|") && strings.Count(strings.ReplaceAll(row, `\|`, ""), "|") != 4 {
			t.Errorf("row %d has other cells: %s", i, row)
		}
	}
}

// TestNamesOfNodesAreShownAsTheyAre, and what cannot be one is recognized.
func TestNamesOfNodesAreShownAsTheyAre(t *testing.T) {
	for given, want := range map[string]string{
		"win-a.example.com": "win-a.example.com", "192.0.2.1": "192.0.2.1", "fd00::1%eth0": "fd00::1%eth0", "": "", "Win_1": "Win_1", "a\n`b\x1b|ü": `a\x0a\x60b\x1b\x7c\xc3\xbc`,
	} {
		if got := escapeName(given); got != want {
			t.Errorf("%q: %s, want %s", given, got, want)
		}
	}
}
