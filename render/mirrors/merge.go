package mirrors

import (
	"maps"
	"slices"
	"strings"
)

// Chain is the result of all sets of one kind for one source: the mirrors in the order in which they are tried.
type Chain struct {
	Source  string
	Mirrors []string
	// Never reports whether the source itself must not be asked.
	Never bool
}

// Merge joins the sets of each source into chains, ordered by source. A set without a mirror other than the source is
// ignored, with its policy, as in OpenShift's own implementation (openshift/runtime-utils pkg/registries).
func Merge(sets []Set) []Chain {
	lists := map[string][][]string{}
	never := map[string]bool{}
	for _, s := range sets {
		if !slices.ContainsFunc(s.Mirrors, func(m string) bool { return m != s.Source }) {
			continue
		}
		lists[s.Source] = append(lists[s.Source], s.Mirrors)
		never[s.Source] = never[s.Source] || s.Policy == NeverContactSource
	}
	chains := make([]Chain, 0, len(lists))
	for source, all := range lists {
		chains = append(chains, Chain{Source: source, Mirrors: mergeLists(all, source), Never: never[source]})
	}
	slices.SortFunc(chains, func(a, b Chain) int { return strings.Compare(a.Source, b.Source) })
	return chains
}

// mergeLists orders the mirrors of one source so that each list's order is kept unless lists contradict each other. The
// source comes after every list that does not name it. If it comes last of all, it is left out, because it is tried
// last anyway.
func mergeLists(lists [][]string, source string) []string {
	return graph{}.mergeLists(lists, source)
}

// mergeDigestsFirst is mergeLists where the mirrors for which isDigest holds come before the others, as far as every
// list's order allows.
func mergeDigestsFirst(lists [][]string, source string, isDigest func(string) bool) []string {
	return graph{waits: func(name string) bool { return !isDigest(name) }}.mergeLists(lists, source)
}

func (g graph) mergeLists(lists [][]string, source string) []string {
	for _, list := range lists {
		for i := 1; i < len(list); i++ {
			g.addEdge(list[i-1], list[i])
		}
		if !slices.Contains(list, source) {
			g.addEdge(list[len(list)-1], source)
		}
	}
	sorted := g.topologicalOrder()
	if n := len(sorted); n > 0 && sorted[n-1] == source {
		sorted = sorted[:n-1]
	}
	return sorted
}

// graph is a directed graph over names. Its zero value is empty.
type graph struct {
	// after are the names that come after a name; before is the number of names that come before it.
	after  map[string]map[string]bool
	before map[string]int
	// waits reports whether a name follows only when no name that does not wait is free. If it is nil, no name waits.
	waits func(string) bool
}

func (g *graph) addEdge(from, to string) {
	if g.after == nil {
		g.after, g.before = map[string]map[string]bool{}, map[string]int{}
	}
	g.addNode(from)
	g.addNode(to)
	if !g.after[from][to] {
		g.after[from][to] = true
		g.before[to]++
	}
}

func (g *graph) addNode(name string) {
	if g.after == nil {
		g.after, g.before = map[string]map[string]bool{}, map[string]int{}
	}
	if g.after[name] == nil {
		g.after[name] = map[string]bool{}
	}
}

// topologicalOrder returns the names so that every edge points forward, unless there are cycles. Names that become free
// together follow in alphabetical order. A cycle is broken at its first name in alphabetical order. If no name waits,
// this is exactly OpenShift's order; a differential test compares the two.
func (g *graph) topologicalOrder() []string {
	names := slices.Sorted(maps.Keys(g.after))
	var free, waiting, out []string
	add := func(list []string) {
		for _, name := range list {
			if g.waits != nil && g.waits(name) {
				waiting = append(waiting, name)
			} else {
				free = append(free, name)
			}
		}
	}
	add(slices.DeleteFunc(slices.Clone(names), func(name string) bool { return g.before[name] > 0 }))
	used := map[string]bool{}
	for rest := names; len(free) > 0 || len(waiting) > 0 || len(rest) > 0; {
		var name string
		if len(free) > 0 {
			name, free = free[0], free[1:]
		} else if len(waiting) > 0 {
			name, waiting = waiting[0], waiting[1:]
		} else if name, rest = rest[0], rest[1:]; used[name] {
			continue
		}
		used[name] = true
		out = append(out, name)
		add(g.releaseNode(name, used))
	}
	return out
}

// releaseNode removes a name from the graph and returns the names that become free: nothing comes before them any more.
func (g *graph) releaseNode(name string, used map[string]bool) []string {
	var batch []string
	for next := range g.after[name] {
		g.before[next]--
		if g.before[next] == 0 && !used[next] {
			batch = append(batch, next)
		}
	}
	slices.Sort(batch)
	return batch
}
