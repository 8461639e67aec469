package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/render/review"
)

// Limits of what is listed of causes.
const (
	mostObjects  = 500
	mostEntries  = 200 // of one object
	shortObjects = 12  // as many are shown at once
)

// causesView says which object causes what, as a picture and in words.
type causesView struct {
	Picture causesPicture
	Objects []cause
	// Count is how many objects there are, More how many are left out.
	Count, More int
	// IsShort says that the list is short enough to be open.
	IsShort bool
}

// cause is an object, and what it makes on nodes.
type cause struct {
	Anchor, Object, Source, Count string
	Entries                       []causedEntry
	More                          int
}

// causedEntry is one entry that an object makes or changes. Anchor is where it stands on the page, empty where it does not.
type causedEntry struct{ Name, Anchor string }

// causesOf says which object causes what: what changes, or without a review, what nodes have. It is nil where no object does anything.
func causesOf(p Page, v view) *causesView {
	g := causesGraph{at: map[partKey]*part{}}
	verb := "makes"
	if p.Review != nil {
		verb = "changes"
		g.addReview(*p.Review, anchorsOf(v.Changes))
	} else {
		for _, n := range v.Nodes {
			g.addBundle(n)
		}
	}
	objects := g.listParts(objectColumn)
	if len(objects) == 0 {
		return nil
	}
	slices.SortFunc(objects, func(a, b *part) int { return strings.Compare(a.object+a.source, b.object+b.source) })
	c := &causesView{Count: len(objects), More: max(0, len(objects)-mostObjects), IsShort: len(objects) <= shortObjects}
	for i, o := range objects {
		o.title = fmt.Sprintf("%s %s %s", o.object, verb, countEntries(len(o.to)))
		if i < mostObjects {
			o.anchor = fmt.Sprintf("o%d", i)
			c.Objects = append(c.Objects, o.listWords())
		}
	}
	c.Picture = g.drawPicture(verb)
	return c
}

// countEntries is a number of entries in words.
func countEntries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// listWords is an object and its entries in words.
func (p *part) listWords() cause {
	c := cause{Anchor: p.anchor, Object: p.object, Source: p.source, Count: countEntries(len(p.to)), More: max(0, len(p.to)-mostEntries)}
	for _, e := range p.to[:len(p.to)-c.More] {
		c.Entries = append(c.Entries, causedEntry{Name: e.kind + " " + e.name, Anchor: e.anchor})
	}
	return c
}

// The columns of the picture: an object changes entries, and these cost something on nodes.
const (
	objectColumn = iota
	entryColumn
	effectColumn
	allColumns
)

// part is an object, an entry, or what happens on nodes, and what follows from it.
type part struct {
	partKey
	// object and source are those of an object.
	object, source string
	// label is in its box, title says more.
	label, title, class, anchor string
	// rank is that of the highest impact: what matters most comes first.
	rank, nodes int
	to          []*part
	leads       map[*part]bool
}

// partKey tells parts apart.
type partKey struct {
	column     int
	kind, name string
}

// causesGraph has each part once.
type causesGraph struct {
	parts []*part
	at    map[partKey]*part
}

func (g *causesGraph) findPart(column int, kind, name string) *part {
	key := partKey{column, kind, name}
	if g.at[key] == nil {
		g.at[key] = &part{partKey: key, label: name, leads: map[*part]bool{}}
		g.parts = append(g.parts, g.at[key])
	}
	return g.at[key]
}

func (g *causesGraph) findObject(r bundle.Ref) *part {
	o := g.findPart(objectColumn, r.Kind, strings.TrimPrefix(r.String(), r.Kind+"/"))
	o.object, o.source = cmp.Or(o.object, r.String()), cmp.Or(o.source, r.Source)
	return o
}

func (g *causesGraph) listParts(column int) []*part {
	return slices.DeleteFunc(slices.Clone(g.parts), func(p *part) bool { return p.column != column })
}

func (p *part) leadTo(q *part) {
	p.rank = max(p.rank, q.rank)
	if !p.leads[q] {
		p.leads[q] = true
		p.to = append(p.to, q)
	}
}

// anchorsOf are the places of changes on the page, the first one of each entry.
func anchorsOf(v *changesView) map[bundle.EntryID]string {
	anchors := map[bundle.EntryID]string{}
	for _, g := range v.Groups {
		for _, c := range g.Changes {
			id := bundle.EntryKind(c.Kind).ID(c.Name)
			anchors[id] = cmp.Or(anchors[id], c.Anchor)
		}
	}
	return anchors
}

// addReview adds all changes, those too that the page does not show.
func (g *causesGraph) addReview(r review.Review, anchors map[bundle.EntryID]string) {
	for _, group := range r.Groups {
		felt := map[*part]bool{}
		for _, c := range group.Changes {
			g.addChange(c, anchors[c.Entry], len(group.Nodes), felt)
		}
		for e := range felt {
			e.nodes += len(group.Nodes)
			e.title = e.label + ": " + bundle.Count(e.nodes, "node")
		}
	}
}

// addChange adds a change of some nodes, and notes which effects these feel.
func (g *causesGraph) addChange(c bundle.Change, anchor string, nodes int, felt map[*part]bool) {
	e := g.findPart(entryColumn, string(c.Kind()), c.Name())
	e.anchor = cmp.Or(e.anchor, anchor)
	e.nodes += nodes
	sign, verb := actionWords(c.Action)
	if label := sign + " " + c.Name(); e.title == "" || e.label == label {
		e.label = label
	} else { // new on one node, removed on another one
		e.label, verb = "~ "+c.Name(), "changed"
	}
	e.title = fmt.Sprintf("%s: %s on %s", c.Entry, verb, bundle.Count(e.nodes, "node"))
	for _, x := range g.effectsOf(c) {
		x.anchor = cmp.Or(x.anchor, anchor)
		felt[x] = true
		e.leadTo(x)
	}
	for _, r := range c.Causes {
		g.findObject(r).leadTo(e)
	}
}

// effectsOf are what a change costs a node: each service that restarts, and more than that.
func (g *causesGraph) effectsOf(c bundle.Change) []*part {
	var list []*part
	for _, s := range c.Restarts {
		x := g.findPart(effectColumn, "services", s)
		x.label, x.class, x.rank = "restarts "+s, impactClass(bundle.ImpactRestart), bundle.ImpactRestart.Rank()
		list = append(list, x)
	}
	if len(list) == 0 || c.Impact.Rank() > bundle.ImpactRestart.Rank() {
		x := g.findPart(effectColumn, "nodes", review.Cost(c.Impact, nil))
		x.class, x.rank = impactClass(c.Impact), c.Impact.Rank()
		list = append(list, x)
	}
	return list
}

// addBundle adds what the first node of a group has.
func (g *causesGraph) addBundle(n nodeGroup) {
	ids := make([]bundle.EntryID, 0, len(n.provenance))
	for id := range n.provenance {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		kind, name, _ := strings.Cut(string(id), " ")
		e := g.findPart(entryColumn, kind, name)
		e.title = string(id)
		e.anchor = cmp.Or(e.anchor, n.anchors[id], n.kinds[kind])
		for _, r := range n.provenance[id] {
			g.findObject(r).leadTo(e)
		}
	}
}
