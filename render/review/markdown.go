package review

import (
	"fmt"
	"regexp"
	"strings"

	"wmco/bundle"
)

// Markdown is the review as a comment of a pull request.
func (r Review) Markdown() string {
	var out strings.Builder
	out.WriteString("### Windows nodes\n\n")
	if why, goOn := r.Findings.Refusal(); why != "" {
		fmt.Fprintf(&out, "**Refused:** %s. To go on, %s.\n\n", why, goOn)
	}
	if r.HasFindings() {
		fmt.Fprintf(&out, "%s\n\n%s", wordsOrCode(r.Summary()), r.Findings.asMarkdown())
	}
	if !r.Differs() {
		fmt.Fprintf(&out, "No change on %s.\n", bundle.Count(len(r.Same), "node"))
		return out.String()
	}
	out.WriteString(r.groupSummary())
	for _, g := range r.Groups {
		out.WriteString(g.asMarkdown())
	}
	return out.String()
}

// groupSummary is one line per group: its nodes, the number of changes and their impact.
func (r Review) groupSummary() string {
	var out strings.Builder
	out.WriteString("| nodes | changes | cost |\n|---|---|---|\n")
	for _, g := range r.Groups {
		fmt.Fprintf(&out, "| %s | %d | %s |\n", firstNames(g.Nodes), len(g.Changes), tableCell(g.cost())+r.Findings.describeCount())
	}
	for _, line := range []struct {
		nodes []string
		text  string
	}{{r.Added, "new"}, {r.Removed, "gone"}, {r.Same, "no change"}} {
		if len(line.nodes) > 0 {
			fmt.Fprintf(&out, "| %s | | %s |\n", firstNames(line.nodes), line.text)
		}
	}
	return out.String()
}

// firstNames names up to three nodes.
func firstNames(nodes []string) string {
	const most = 3
	text := "`" + joinEscaped(nodes[:min(most, len(nodes))], "`, `") + "`"
	if len(nodes) > most {
		text += fmt.Sprintf(" and %d more", len(nodes)-most)
	}
	return text
}

func (g Group) asMarkdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n#### %s\n\n", firstNames(g.Nodes))
	for _, c := range g.Changes {
		fmt.Fprintf(
			&out, "<details><summary>%s <code>%s</code>: %s%s</summary>\n\n", actionVerb(c.Action),
			escapeHTML(singleLine(string(c.Entry))), escapeHTML(Cost(c.Impact, c.Restarts)),
			escapeHTML(causesText(c.Causes)),
		)
		if note := Warning(c); note != "" {
			fmt.Fprintf(&out, "**Warning:** %s.\n\n", note)
		}
		fmt.Fprintf(&out, "%s\n</details>\n", codeFence(Unified(c)))
	}
	return out.String()
}

func actionVerb(a bundle.Action) string {
	switch a {
	case bundle.ActionAdd:
		return "new"
	case bundle.ActionChange:
		return "changed"
	case bundle.ActionRemove:
		return "removed"
	}
	return string(a)
}

// tableCell is a text in a table.
func tableCell(text string) string { return strings.ReplaceAll(wordsOrCode(text), "|", `\|`) }

// notPlain is a character with which something in Markdown can begin, an address such as www.example.com too.
var notPlain = regexp.MustCompile(`[^A-Za-z0-9_ ,:;()%-]`)

// wordsOrCode is a text as it is: as words, or as code where it may be something else in Markdown.
func wordsOrCode(text string) string {
	if notPlain.MatchString(text) {
		return codeSpan(text)
	}
	return text
}

func escapeHTML(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// codeSpan is a text as it is: nothing in it becomes a link, a picture or a mention.
func codeSpan(text string) string {
	if text = singleLine(text); text == "" {
		return ""
	}
	mark := "`"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " " // one on each side is no part of it (CommonMark 6.1)
	}
	return mark + text + mark
}

// codeFence is a code block that nothing in the text can close.
func codeFence(text string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return mark + "diff\n" + text + mark + "\n"
}
