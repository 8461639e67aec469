package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"wmco/bundle"
	"wmco/bundle/reason"
	"wmco/internal/cli"
)

// The codes of colours: SGR of ECMA-48.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// palette colours words; the zero value does not.
type palette struct{ on bool }

func (p palette) paint(code, text string) cli.Ready {
	text = cli.Plain(text)
	if !p.on || text == "" {
		return cli.Ready(text)
	}
	return cli.Ready("\x1b[" + code + "m" + text + "\x1b[0m")
}

func (p palette) bold(text string) cli.Ready { return p.paint(bold, text) }
func (p palette) dim(text string) cli.Ready  { return p.paint("2", text) }

func (p palette) severity(s bundle.Severity) cli.Ready {
	switch s {
	case bundle.SeverityError:
		return p.paint(red, string(s))
	case bundle.SeverityWarning:
		return p.paint(yellow, string(s))
	case bundle.SeverityInfo:
		return p.paint(cyan, string(s))
	}
	return cli.Ready(cli.Plain(string(s)))
}

// terminalColumns returns the width of the terminal that is written to, 0 for anything else.
func terminalColumns(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// printFindings writes findings as people read them: what, where, and what to do.
//
//	warning  CertificateSkipped  ConfigMap/ns/trusted-ca data["ca-bundle.crt"]  (trusted-ca.yaml:1)
//	         block 2 is a KEY, not a CERTIFICATE; the other certificates are used
//	         fix: remove or correct the block
func printFindings(w io.Writer, p palette, findings bundle.Findings) {
	columns := terminalColumns(w)
	for _, f := range joinSame(findings.AtMost(bundle.MostShown, reason.MoreFindings)) {
		where := strings.TrimSpace(f.Object.String() + " " + f.Field)
		if f.Node != "" && f.Node != f.Object.Name {
			where = strings.TrimSpace(f.Node + "  " + where)
		}
		printHeading(w, p, f, where, columns)
		cli.Printf(w, "%s\n", wrapBehind("         ", f.Message, columns))
		switch {
		case f.IsAccepted():
			printLabelled(w, p, "accepted by "+f.Accepted.Owner+":", f.Accepted.Reason, columns)
		case f.Fix != "":
			printLabelled(w, p, "fix:", f.Fix, columns)
		}
	}
}

// printHeading prints what a finding is about, and its place. Where both are too long for the terminal, each has lines
// of its own.
func printHeading(w io.Writer, p palette, f bundle.Finding, where string, columns int) {
	var source string
	if f.Object.Source != "" {
		source = placeText(f.Object)
	}
	about, separator := wrapBehind("  ", where, 0), cli.Ready("  ")
	if columns > 0 && utf8.RuneCountInString(fmt.Sprintf("%-7s  %s%s  %s", f.Severity, f.Reason, about, source)) > columns {
		separator = "\n         "
		if where != "" {
			about = "\n" + wrapBehind("         ", where, columns)
		}
	}
	if source == "" {
		separator = ""
	}
	cli.Printf(
		w, "%s%s  %s%s%s%s\n", p.severity(f.Severity), strings.Repeat(" ", max(0, 7-len(f.Severity))),
		p.bold(f.Reason), about, separator, p.dim(source),
	)
}

// wrapReview breaks the summary of a review and the texts of its findings to the columns of a terminal.
func wrapReview(text string, columns int) string {
	if columns == 0 {
		return text
	}
	const indent = "           "
	lines := strings.Split(text, "\n")
	isFinding := false
	for i, line := range lines {
		isFinding = strings.HasPrefix(line, "+ ") || strings.HasPrefix(line, "- ") || isFinding && line != ""
		switch {
		case i == 0:
			lines[i] = cli.WrapTo(line, "  ", columns)
		case isFinding && strings.HasPrefix(line, indent):
			lines[i] = cli.WrapTo(line, indent, columns)
		}
	}
	return strings.Join(lines, "\n")
}

// printLabelled prints a text behind a label, in the width of the terminal.
func printLabelled(w io.Writer, p palette, label, text string, columns int) {
	indented := "         " + label
	cli.Printf(
		w, "         %s%s\n", p.dim(label),
		cli.Ready(strings.TrimPrefix(string(wrapBehind(indented, " "+text, columns)), indented)),
	)
}

// wrapBehind is a text behind a lead, broken to the columns of a terminal below the end of the lead; one line where
// there is none.
func wrapBehind(lead, text string, columns int) cli.Ready {
	if columns == 0 {
		return cli.Ready(lead + cli.Plain(text))
	}
	return cli.Ready(cli.WrapTo(lead+text, "         ", columns))
}

// hangingText is a text behind a lead, broken to the columns of a terminal at the end of the lead; one line where there
// is none, or no room.
func hangingText(lead, text string, columns int) cli.Ready {
	lead, text = cli.Plain(lead), cli.Plain(text)
	width := utf8.RuneCountInString(lead)
	if columns < width+leastHanging {
		return cli.Ready(lead + text)
	}
	return cli.Ready(lead + strings.ReplaceAll(cli.WrapTo(text, "", columns-width), "\n", "\n"+strings.Repeat(" ", width)))
}

// leastHanging is the room without which a text does not hang behind its lead.
const leastHanging = 24

// mostSame is of how many nodes the same finding is printed.
const mostSame = 3

// joinSame leaves out equal findings of many nodes, and counts the nodes.
func joinSame(findings bundle.Findings) bundle.Findings {
	type text struct{ reason, field, message, fix string }
	count, seen := map[text]int{}, map[text]int{}
	of := func(f bundle.Finding) text { return text{f.Reason, f.Field, f.Message, f.Fix} }
	for _, f := range findings {
		if f.Node != "" {
			count[of(f)]++
		}
	}
	var out bundle.Findings
	for _, f := range findings {
		t := of(f)
		if f.Node != "" && count[t] > mostSame+1 {
			if seen[t]++; seen[t] > mostSame {
				continue
			}
			if seen[t] == mostSame {
				f.Message += " (and the same of " + bundle.Count(count[t]-mostSame, "more node") + ")"
			}
		}
		out = append(out, f)
	}
	return out
}

func placeText(r bundle.Ref) string {
	if r.Line == 0 {
		return "(" + r.Source + ")"
	}
	return fmt.Sprintf("(%s:%d)", r.Source, r.Line)
}

// findingsAnswer returns the findings for JSON: a list, also where there are none.
func findingsAnswer(findings bundle.Findings) bundle.Findings {
	return append(bundle.Findings{}, findings.AtMost(bundle.MostAnswers, reason.MoreFindings)...)
}

// countText returns how many findings of each severity there are.
func countText(findings bundle.Findings) string {
	n := map[bundle.Severity]int{}
	for _, f := range findings.Open() {
		n[f.Severity]++
	}
	accepted := ""
	if n := len(findings.Accepted()); n > 0 {
		accepted = fmt.Sprintf(", %d accepted", n)
	}
	return bundle.Count(n[bundle.SeverityError], "error") + ", " +
		bundle.Count(n[bundle.SeverityWarning], "warning") + ", " + bundle.Count(n[bundle.SeverityInfo], "info") + accepted
}

// severityText returns how many findings of each severity there are that any has, the most severe first.
func severityText(findings bundle.Findings) string {
	var parts []string
	for _, s := range []bundle.Severity{bundle.SeverityError, bundle.SeverityWarning, bundle.SeverityInfo} {
		if n := len(findings.Of(s)); n > 0 {
			parts = append(parts, bundle.Count(n, string(s)))
		}
	}
	return strings.Join(parts, ", ")
}

// planText returns how many actions a plan has, and its impact.
func planText(actions int, impact bundle.Impact) string {
	return fmt.Sprintf("%s, impact %s", bundle.Count(actions, "action"), impact)
}

// byteSize prints bytes for people.
func byteSize(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// wrapWide breaks a text to the columns of the terminal, and to cli.Columns where there is none. Times are durations.
func wrapWide(a app, text, indent string) string {
	return cli.WrapTo(relativeTimes(a.now(), text), indent, cmp.Or(terminalColumns(a.stdout), cli.Columns))
}
