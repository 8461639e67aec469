package page

import (
	"slices"
	"strings"

	"wmco/bundle"
)

// cause is an object, and what it makes on nodes.
type cause struct {
	Object  string
	Source  string
	Entries []causedEntry
	More    int
}

// causedEntry is one entry that an object makes or changes. Anchor is where it stands on the page, empty where it does not.
type causedEntry struct{ Name, Anchor string }

// mostEntries is how many entries of one object are listed.
const mostEntries = 200

// causesOf says which object causes what: what changes, or without a review, what nodes have.
func causesOf(p Page, v view) []cause {
	c := causes{at: map[string]int{}, seen: map[[2]string]bool{}}
	if p.Review != nil {
		c.ofChanges(v.Changes.Groups)
	} else {
		for _, g := range v.Nodes {
			c.ofBundle(g)
		}
	}
	slices.SortFunc(c.list, func(a, b cause) int { return strings.Compare(a.Object+a.Source, b.Object+b.Source) })
	return c.list
}

// causes are collected one entry after the other.
type causes struct {
	list []cause
	at   map[string]int
	seen map[[2]string]bool
}

func (c *causes) addCause(object, source string, e causedEntry) {
	key := [2]string{object, e.Name}
	if c.seen[key] {
		return
	}
	c.seen[key] = true
	i, ok := c.at[object]
	if !ok {
		i = len(c.list)
		c.at[object] = i
		c.list = append(c.list, cause{Object: object, Source: source})
	}
	if len(c.list[i].Entries) >= mostEntries {
		c.list[i].More++
		return
	}
	c.list[i].Entries = append(c.list[i].Entries, e)
}

func (c *causes) ofChanges(groups []changeGroup) {
	for _, g := range groups {
		for _, x := range g.Changes {
			for _, object := range x.Causes {
				c.addCause(object, "", causedEntry{Name: x.Kind + " " + x.Name, Anchor: x.Anchor})
			}
		}
	}
}

func (c *causes) ofBundle(g nodeGroup) {
	ids := make([]bundle.EntryID, 0, len(g.provenance))
	for id := range g.provenance {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		for _, r := range g.provenance[id] {
			c.addCause(r.String(), r.Source, causedEntry{Name: string(id), Anchor: g.anchors[id]})
		}
	}
}
