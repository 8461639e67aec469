// Package review writes the differences between bundles for people: what would change on which nodes, its impact and
// the objects that caused it. It is pure: nodes in, text out.
//
//	pairs of bundles --Compare--> one group per set of equal changes --> text | markdown | JSON
package review

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"wmco/bundle"
)

// Node is one node's bundle on one side of a comparison.
type Node struct {
	// Name is the node's name or, before there is a node, its address; empty for the one node of a preview without
	// names.
	Name string
	// Address matches a node that was renamed; empty where it is not known.
	Address string
	Bundle  bundle.Bundle
	// Findings are those about the inputs of the bundle, the cluster's included.
	Findings bundle.Findings
}

// Review is the difference between two sets of nodes.
type Review struct {
	// Findings are what the change adds and what it resolves.
	Findings Findings `json:"findings"`
	// Same are the nodes that do not change.
	Same []string `json:"same"`
	// Added and Removed are nodes on one side only.
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	// Groups are the nodes that change, those with equal changes together.
	Groups []Group `json:"groups"`
}

// Group is some nodes that change in the same way.
type Group struct {
	Nodes    []string       `json:"nodes"`
	Impact   bundle.Impact  `json:"impact"`
	Restarts []string       `json:"restarts"`
	Changes  bundle.Changes `json:"changes"`
}

// Differs reports whether any node changes.
func (r Review) Differs() bool { return len(r.Groups)+len(r.Added)+len(r.Removed) > 0 }

// HasFindings reports whether the change adds or resolves any finding.
func (r Review) HasFindings() bool {
	return len(r.Findings.Added)+len(r.Findings.Removed)+len(r.Findings.Accepted) > 0
}

// Compare compares the nodes of two sides. They are matched by name, or else by address.
func Compare(before, after []Node) Review {
	r := Review{
		Findings: compareFindings(before, after), Same: []string{}, Added: []string{}, Removed: []string{},
		Groups: []Group{},
	}
	matched := make([]bool, len(before))
	for _, n := range slices.SortedFunc(slices.Values(after), func(a, b Node) int { return cmp.Compare(a.Name, b.Name) }) {
		i := matchNode(before, matched, n, len(after))
		if i < 0 {
			r.Added = append(r.Added, n.Name)
			continue
		}
		matched[i] = true
		changes := bundle.Diff(before[i].Bundle, n.Bundle)
		if len(changes) == 0 {
			r.Same = append(r.Same, n.Name)
			continue
		}
		r.addNode(n.Name, changes)
	}
	for i, n := range before {
		if !matched[i] {
			r.Removed = append(r.Removed, n.Name)
		}
	}
	slices.Sort(r.Removed)
	slices.SortStableFunc(r.Groups, func(a, b Group) int { return cmp.Compare(b.Impact.Rank(), a.Impact.Rank()) })
	return r
}

// matchNode finds the node on the other side: of the same name, of the same address, or the only one there is.
func matchNode(before []Node, matched []bool, n Node, others int) int {
	for _, same := range []func(Node) bool{
		func(b Node) bool { return b.Name == n.Name },
		func(b Node) bool { return b.Address != "" && b.Address == n.Address },
		func(b Node) bool { return b.Name == "" && others == 1 && len(before) == 1 },
	} {
		for i, b := range before {
			if !matched[i] && same(b) {
				return i
			}
		}
	}
	return -1
}

func (r *Review) addNode(name string, changes bundle.Changes) {
	for i, g := range r.Groups {
		if reflect.DeepEqual(g.Changes, changes) {
			r.Groups[i].Nodes = append(g.Nodes, name)
			return
		}
	}
	r.Groups = append(r.Groups, Group{
		Nodes: []string{name}, Impact: changes.Impact(), Restarts: changes.Restarts(), Changes: changes,
	})
}

// changeJSON is a change with its differences as text.
type changeJSON struct {
	bundle.Change
	Diff string `json:"diff"`
	// Warning is what a reviewer should know about a removal.
	Warning string `json:"warning,omitempty"`
}

// groupJSON is a group as programs read it.
type groupJSON struct {
	Nodes    []string      `json:"nodes"`
	Impact   bundle.Impact `json:"impact"`
	Restarts []string      `json:"restarts"`
	Changes  []changeJSON  `json:"changes"`
}

// MarshalJSON adds the text of each difference.
func (g Group) MarshalJSON() ([]byte, error) {
	out := groupJSON{Nodes: g.Nodes, Impact: g.Impact, Restarts: append([]string{}, g.Restarts...), Changes: []changeJSON{}}
	for _, c := range g.Changes {
		out.Changes = append(out.Changes, changeJSON{Change: c, Diff: Unified(c), Warning: Warning(c)})
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encoding review: %w", err)
	}
	return data, nil
}
