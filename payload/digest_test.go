package payload

import (
	"testing"

	"wmco/bundle"
)

func TestTheDigestIsThatOfTheExecutables(t *testing.T) {
	a, b := Built{Name: "a", Digest: bundle.Of([]byte("a"))}, Built{Name: "b", Digest: bundle.Of([]byte("b"))}
	first := Set{Source: "here", Built: []Built{a, b}}.Digest()
	if err := first.Validate(); err != nil {
		t.Error(err)
	}
	if other := (Set{Source: "there", Built: []Built{b, a}}).Digest(); other != first {
		t.Errorf("another order or folder: %s, not %s", other, first)
	}
	if (Set{}).Digest() != "" {
		t.Error("no payload has a digest")
	}
	changed := b
	changed.Digest = bundle.Of([]byte("c"))
	for name, s := range map[string]Set{"one less": {Built: []Built{a}}, "another content": {Built: []Built{a, changed}}, "exchanged": {Built: []Built{{Name: "a", Digest: b.Digest}, {Name: "b", Digest: a.Digest}}}} {
		if s.Digest() == first {
			t.Errorf("%s: the same digest", name)
		}
	}
}
