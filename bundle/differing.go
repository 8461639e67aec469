package bundle

import (
	"maps"
	"slices"
)

// Differing returns the entries that only one of two bundles has, or that differ between them, sorted. Contents are
// compared by their digests, so that bundles without contents, as hosts keep them, can be compared. Digests of secrets
// must have one key.
func Differing(a, b Bundle) []EntryID {
	all, others := a.encodedEntries(), b.encodedEntries()
	for id, text := range others {
		if other, ok := all[id]; ok && other == text {
			delete(all, id)
			continue
		}
		all[id] = text
	}
	return slices.Sorted(maps.Keys(all))
}

// encodedEntries returns the entries of both layers as a manifest has them.
func (b Bundle) encodedEntries() map[EntryID]string {
	all := map[EntryID]string{}
	for _, k := range kinds {
		k.addEncoded(&b.Cluster, all)
		k.addEncoded(&b.Node, all)
	}
	return all
}
