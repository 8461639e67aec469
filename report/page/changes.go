package page

import (
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/render/review"
)

// Limits of what a page shows of differences: a page is for reading, JSON has all.
const (
	mostGroups   = 100
	mostLines    = 400
	mostPrevious = 400 // entries of one group
)

// changesView is a review.
type changesView struct {
	Groups               []changeGroup
	Added, Removed, Same []string
	// More is how many groups are left out.
	More int
}

// changeGroup is nodes that change in the same way.
type changeGroup struct {
	Anchor string
	// Title names the nodes, Nodes are all of them.
	Title string
	Nodes []string
	Cost  string
	// Example is the node whose texts are shown, where those of the others differ in their own names and addresses; empty where they are equal.
	Example  string
	Services diagram
	Changes  []changeView
	More     int
}

// changeView is the change of one entry.
type changeView struct {
	Anchor, Sign, Verb, Kind, Name, Cost, Warning string
	Causes                                        []string
	Lines                                         []diffLine
	More                                          int
}

// diffLine is a line of a difference, with its class.
type diffLine struct{ Class, Text string }

func changesOf(p Page) *changesView {
	if p.Review == nil {
		return nil
	}
	merged := mergeGroups(p.Review.Groups)
	v := &changesView{Added: p.Review.Added, Removed: p.Review.Removed, Same: p.Review.Same, More: max(0, len(merged)-mostGroups)}
	for i, m := range merged[:min(mostGroups, len(merged))] {
		v.Groups = append(v.Groups, m.view(fmt.Sprintf("g%d", i), p.Nodes))
	}
	return v
}

// mergedGroup is groups whose changes are of the same entries, with the same impact: nodes whose own names and addresses are in them.
type mergedGroup struct {
	review.Group
	groups int
}

func mergeGroups(groups []review.Group) []mergedGroup {
	var list []mergedGroup
	at := map[string]int{}
	for _, g := range groups {
		key := shapeOf(g)
		if i, ok := at[key]; ok {
			list[i].Nodes = append(slices.Clone(list[i].Nodes), g.Nodes...)
			list[i].groups++
			continue
		}
		at[key] = len(list)
		list = append(list, mergedGroup{Group: g, groups: 1})
	}
	return list
}

// shapeOf is what groups have in common that are merged: everything but the texts, and that each node's own Node is a cause.
func shapeOf(g review.Group) string {
	var out strings.Builder
	for _, c := range g.Changes {
		fmt.Fprintf(&out, "%s\x00%s\x00%s\x00%q", c.Entry, c.Action, c.Impact, c.Restarts)
		for _, r := range c.Causes {
			if r.Kind == "Node" && slices.Contains(g.Nodes, r.Name) {
				r = bundle.Ref{Kind: r.Kind}
			}
			fmt.Fprintf(&out, "\x00%s\x00%s", r.Group, r)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func (m mergedGroup) view(anchor string, nodes []review.Node) changeGroup {
	v := changeGroup{Anchor: anchor, Title: someOf(m.Nodes), Nodes: m.Nodes, Cost: review.Cost(m.Impact, m.Restarts), More: max(0, len(m.Changes)-mostPrevious)}
	if m.groups > 1 {
		v.Example = m.Nodes[0]
	}
	if i := slices.IndexFunc(nodes, func(n review.Node) bool { return n.Name == m.Nodes[0] }); i >= 0 && len(m.Restarts) > 0 {
		v.Services = servicesDiagram(anchor, nodes[i].Bundle.Services(), m.Restarts)
	}
	for i, c := range m.Changes[:min(mostPrevious, len(m.Changes))] {
		v.Changes = append(v.Changes, changeOf(fmt.Sprintf("%s-%d", anchor, i), c))
	}
	return v
}

func changeOf(anchor string, c bundle.Change) changeView {
	v := changeView{Anchor: anchor, Kind: string(c.Kind()), Name: c.Name(), Cost: review.Cost(c.Impact, c.Restarts), Warning: review.Warning(c)}
	v.Sign, v.Verb = actionWords(c.Action)
	for _, r := range c.Causes {
		v.Causes = append(v.Causes, r.String())
	}
	v.Lines, v.More = diffLines(review.Unified(c))
	return v
}

// actionWords are what happens to an entry as a sign and as a word.
func actionWords(a bundle.Action) (sign, verb string) {
	switch a {
	case bundle.ActionAdd:
		return "+", "new"
	case bundle.ActionChange:
		return "~", "changed"
	case bundle.ActionRemove:
		return "-", "removed"
	}
	return "", string(a)
}

// diffLines are the first lines of a difference, and how many there are more.
func diffLines(text string) ([]diffLine, int) {
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var lines []diffLine
	for _, l := range all[:min(mostLines, len(all))] {
		class := "same"
		switch {
		case strings.HasPrefix(l, "+"):
			class = "added"
		case strings.HasPrefix(l, "-"):
			class = "removed"
		case strings.HasPrefix(l, "@@"):
			class = "place"
		}
		lines = append(lines, diffLine{class, shortenLabel(l, mostColumns)})
	}
	return lines, len(all) - len(lines)
}

// mostColumns is how much of one line is shown: a line of base64 is no text for people.
const mostColumns = 2000
