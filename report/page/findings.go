package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
)

// mostFindings is how many findings of one list a page has.
const mostFindings = 200

// findingList is findings under one title.
type findingList struct {
	Title    string
	Findings []findingView
	// More is how many are left out.
	More int
}

// findingView is one finding.
type findingView struct {
	Severity, Reason, About, Source, Message, Fix, Accepted string
}

// findingLists are those of the page: what a change adds and resolves, or what the inputs have.
func findingLists(p Page) []findingList {
	list := []findingList{}
	if p.Review != nil {
		list = append(list, listed("New findings", p.Review.Findings.Added), listed("Accepted findings", p.Review.Findings.Accepted), listed("Resolved findings", p.Review.Findings.Removed))
	}
	list = append(list, listed("Findings of the inputs", p.Findings))
	return slices.DeleteFunc(list, func(l findingList) bool { return len(l.Findings) == 0 })
}

func listed(title string, findings bundle.Findings) findingList {
	sorted := findings.Sorted()
	shown := sorted[:min(mostFindings, len(sorted))]
	l := findingList{Title: fmt.Sprintf("%s: %d", title, len(sorted)), More: len(sorted) - len(shown)}
	for _, f := range shown {
		v := findingView{Severity: string(f.Severity), Reason: f.Reason, About: aboutOf(f), Message: f.Message, Fix: f.Fix}
		if f.IsAccepted() {
			v.Fix, v.Accepted = "", f.Accepted.Owner+": "+f.Accepted.Reason
		}
		if f.Object.Source != "" {
			v.Source = strings.TrimSuffix(fmt.Sprintf("%s:%d", f.Object.Source, f.Object.Line), ":0")
		}
		l.Findings = append(l.Findings, v)
	}
	return l
}

// aboutOf is the node, the object and the field of a finding, as far as it has them.
func aboutOf(f bundle.Finding) string {
	node := f.Node
	if node == f.Object.Name {
		node = ""
	}
	return strings.Join(strings.Fields(strings.Join([]string{node, cmp.Or(f.Object.String(), f.Object.Source), f.Field}, " ")), " ")
}
