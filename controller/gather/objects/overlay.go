package objects

import (
	"context"
	"slices"
)

// NewOverlayReader reads from several readers. An object of a later reader replaces that of an earlier one. If the two
// differ, that is a finding.
func NewOverlayReader(readers ...Reader) Reader {
	if len(readers) == 1 {
		return readers[0]
	}
	return overlay(slices.Clone(readers))
}

type overlay []Reader

// Read implements Reader.
func (o overlay) Read(ctx context.Context, wants []Want) (Set, error) {
	var all Set
	found := map[identity]Object{}
	for _, r := range o {
		set, err := r.Read(ctx, wants)
		if err != nil {
			return Set{}, err
		}
		all.Unused = append(all.Unused, set.Unused...)
		all.Findings = append(all.Findings, set.Findings...)
		earlier, replacements := replaceEarlier(found, set.Objects)
		all.Findings = append(all.Findings, replacements...)
		all.Replaced = slices.Concat(all.Replaced, set.Replaced, earlier)
	}
	set := newSet(found, all.Findings)
	set.Unused, set.Replaced = all.Unused, all.Replaced
	return set, nil
}
