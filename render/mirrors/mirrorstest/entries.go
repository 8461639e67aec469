// Package mirrorstest converts what render/mirrors merges to entries of registries.conf, so that tests can compare it
// with what OpenShift's own code writes for the same mirror sets.
package mirrorstest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"wmco/bundle"
	"wmco/render/mirrors"
)

// Entry is the part of registries.conf about one source. Digests and Tags are its mirrors in order, for pulls by digest
// and by tag.
type Entry struct {
	Source        string
	Digests, Tags []string
	Blocked       bool
}

// Entries merges mirror sets, sorted by source.
func Entries(sets []mirrors.Set) []Entry {
	var digests, tags []mirrors.Set
	for _, s := range sets {
		if s.Kind == mirrors.TagSet {
			tags = append(tags, s)
		} else {
			digests = append(digests, s)
		}
	}
	entries := map[string]Entry{}
	for _, chain := range mirrors.Merge(digests) {
		entries[chain.Source] = Entry{Source: chain.Source, Digests: chain.Mirrors, Blocked: chain.Never}
	}
	for _, chain := range mirrors.Merge(tags) {
		e := entries[chain.Source]
		entries[chain.Source] = Entry{
			Source: chain.Source, Digests: e.Digests, Tags: chain.Mirrors, Blocked: e.Blocked || chain.Never,
		}
	}
	return slices.SortedFunc(maps.Values(entries), BySource)
}

// BySource orders entries by their source.
func BySource(x, y Entry) int { return cmp.Compare(x.Source, y.Source) }

// Refuses reports whether one of the errors among the findings has OpenShift's message, apart from what the finding masks: users, passwords and queries.
func Refuses(findings bundle.Findings, message string) bool {
	return slices.ContainsFunc(findings, func(f bundle.Finding) bool {
		parts := strings.Split(f.Message, bundle.MaskedText)
		rest, same := strings.CutPrefix(message, parts[0])
		for _, part := range parts[1:] {
			_, after, found := strings.Cut(rest, part)
			rest, same = after, same && found
		}
		return f.Severity == bundle.SeverityError && same && (rest == "" || len(parts) > 1 && strings.HasSuffix(message, parts[len(parts)-1]))
	})
}
