package imports

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkRules returns every violation of the rules in a module, sorted. A package without a row is a violation.
func checkRules(g graph, rules []rule) []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(g.packages)) {
		if own, ok := g.own(path); ok {
			out = append(out, g.checkPackage(own, rules)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (g graph) checkPackage(own string, rules []rule) []string {
	r, ok := ruleFor(own, rules)
	if !ok {
		return []string{fmt.Sprintf("%s has no row in the import table", g.full(own))}
	}
	if r.anything {
		return nil
	}
	return slices.Concat(g.checkImports(own, r, rules), g.checkLinks(own, r))
}

// checkImports compares the direct imports of a package with its row.
func (g graph) checkImports(own string, r rule, rules []rule) []string {
	var out []string
	for _, path := range g.packages[g.full(own)].Imports {
		imported, ok := g.own(path)
		if !ok || matchesAny(r.imports, imported) {
			continue
		}
		if other, ok := ruleFor(imported, rules); ok && other.pkg == r.pkg {
			continue
		}
		out = append(out, fmt.Sprintf("%s may not import %s", g.full(own), path))
	}
	return out
}

// checkLinks compares everything that a package links with its row. Of the packages that match one pattern, it returns
// the one with the shortest chain.
func (g graph) checkLinks(own string, r rule) []string {
	chains := g.importChains(g.full(own))
	shortest := map[string][]string{}
	note := func(reason string, chain []string) {
		known, ok := shortest[reason]
		if !ok || len(chain) < len(known) || len(chain) == len(known) && slices.Compare(chain, known) < 0 {
			shortest[reason] = chain
		}
	}
	for path, chain := range chains {
		name, ours := g.own(path)
		if !ours {
			name = path
		}
		for _, pattern := range r.never {
			if matchesPattern(pattern, name) {
				note("must never link "+pattern, chain)
			}
		}
		if r.only != nil && !ours && !g.packages[path].Standard && !matchesAny(r.only, path) {
			note("may link nothing but the standard library and "+strings.Join(r.only, ", "), chain)
		}
	}
	var out []string
	for reason, chain := range shortest {
		out = append(out, fmt.Sprintf("%s %s: %s", g.full(own), reason, strings.Join(chain, " -> ")))
	}
	return out
}

// ruleFor returns the most specific row for a package of the module.
func ruleFor(own string, rules []rule) (rule, bool) {
	var best rule
	found := false
	for _, r := range rules {
		if (own == r.pkg || strings.HasPrefix(own, r.pkg+"/")) && (!found || len(r.pkg) > len(best.pkg)) {
			best, found = r, true
		}
	}
	return best, found
}

// own returns the name of a package inside the module, and whether it is in the module.
func (g graph) own(path string) (string, bool) {
	return strings.CutPrefix(path, g.module+"/")
}

func (g graph) full(own string) string { return g.module + "/" + own }

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matchesPattern(p, name) })
}

func matchesPattern(pattern, name string) bool {
	prefix, tree := strings.CutSuffix(pattern, "/...")
	return name == prefix || tree && strings.HasPrefix(name, prefix+"/")
}
