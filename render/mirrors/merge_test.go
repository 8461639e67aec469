package mirrors

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMergeVectors: how lists of mirrors are merged, for digests and tags alike. internal/verify/registriesconf holds the same table, and far more,
// against OpenShift's own code.
func TestMergeVectors(t *testing.T) {
	set := func(source string, policy Policy, list ...string) Set {
		return Set{Kind: DigestSet, Source: source, Mirrors: list, Policy: policy}
	}
	one := func(never bool, list ...string) []Chain { return []Chain{{Source: "s", Mirrors: list, Never: never}} }
	for name, c := range map[string]struct {
		sets []Set
		want []Chain
	}{
		"lists that overlap are joined":              {[]Set{set("s", "", "a", "b", "c"), set("s", "", "c", "d", "e")}, one(false, "a", "b", "c", "d", "e")},
		"the order of objects does not matter":       {[]Set{set("s", "", "c", "d", "e"), set("s", "", "a", "b", "c")}, one(false, "a", "b", "c", "d", "e")},
		"one list is not sorted":                     {[]Set{set("s", "", "z", "m", "a")}, one(false, "z", "m", "a")},
		"unrelated lists are taken in turns":         {[]Set{set("s", "", "z1", "z2"), set("s", "", "a1", "a2")}, one(false, "a1", "z1", "a2", "z2")},
		"one Never is enough":                        {[]Set{set("s", "", "a"), set("s", NeverContactSource, "b")}, one(true, "a", "b")},
		"Allow is no Never":                          {[]Set{set("s", AllowContactingSource, "a")}, one(false, "a")},
		"no mirrors, no policy":                      {[]Set{set("s", NeverContactSource)}, []Chain{}},
		"the source as its only mirror is no mirror": {[]Set{set("s", NeverContactSource, "s")}, []Chain{}},
		"a cycle is broken at the first name":        {[]Set{set("s", "", "r1", "r2"), set("s", "", "local", "r2", "r1")}, one(false, "local", "r1", "r2")},
		"a scope in a scope is an entry of its own": {
			[]Set{set("q.io/lib/busybox", "", "n.io/bb"), set("q.io/lib", "", "m.io/lib")},
			[]Chain{{Source: "q.io/lib", Mirrors: []string{"m.io/lib"}}, {Source: "q.io/lib/busybox", Mirrors: []string{"n.io/bb"}}},
		},
		"the source between mirrors stays":          {[]Set{set("s", "", "a", "s", "b")}, one(false, "a", "s", "b")},
		"the source behind its mirrors is left out": {[]Set{set("s", "", "a", "b", "s")}, one(false, "a", "b")},
		"a repeated mirror is one":                  {[]Set{set("s", "", "a", "a", "b", "a")}, one(false, "a", "b")},
		"other spellings are other sources":         {[]Set{set("s", "", "a"), set("S", NeverContactSource, "b")}, []Chain{{Source: "S", Mirrors: []string{"b"}, Never: true}, {Source: "s", Mirrors: []string{"a"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Merge(c.sets)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
