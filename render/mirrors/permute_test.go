package mirrors

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
)

// TestOrderAndSplit: the same entries, in any order and spread over any objects, give the same files.
func TestOrderAndSplit(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	met := map[string]int{}
	for i := range 1_500 {
		in := randomInputs(random)
		o := Options{PartialNever: []PartialNever{Closed, Open}[i%2]}
		want := withoutCauses(Build(in, o).Files)
		if len(want) > 1 {
			met["files"]++
		}
		if slices.ContainsFunc(want, func(f HostsFile) bool { return len(f.Hosts) > 1 && !f.Server.IsZero() }) {
			met["closed hosts with an order"]++
		}
		for range 4 {
			other := shuffled(random, in)
			got := withoutCauses(Build(other, o).Files)
			if diff := cmp.Diff(want, got, comparingSecrets); diff != "" {
				t.Fatalf("case %d (-first +shuffled):\n%s\n%+v\n%+v", i, diff, in, other)
			}
		}
	}
	for _, what := range []string{"files", "closed hosts with an order"} {
		if met[what] < 100 {
			t.Errorf("%s: only %d", what, met[what])
		}
	}
}

var comparingSecrets = cmp.Comparer(func(x, y bundle.Secret) bool { return x.Reveal() == y.Reveal() })

func withoutCauses(files []HostsFile) []HostsFile {
	files = slices.Clone(files)
	for i := range files {
		files[i].Causes = nil
	}
	return files
}

// randomInputs returns inputs without errors. Sources with an odd number are never contacted.
func randomInputs(random *rand.Rand) Inputs {
	sources := []string{"q.io", "q.io/lib", "q.io/lib/box", "Q.io/lib", "Q.io", "m.io/lib", "*.lab.io", "h.io:5000", "docker.io/library"}
	names := []string{"m.io", "M.io", "m.io/lib", "n.io/lib/box", "n.io/a/lib", "q.io", "q.io/b/lib", "h.io:5000/lib", "h.io:5000/lib/box", "docker.io/library"}
	random.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
	in := Inputs{PullSecret: bundle.NewSecret(`{"auths": {"m.io": {"username": "u", "password": "1"}, "m.io/lib": {"username": "u", "password": "2"}, "h.io:5000": {"username": "u", "password": "3"}}}`)}
	for range 1 + random.IntN(10) {
		n := random.IntN(3 + random.IntN(len(sources)-2))
		s := Set{Kind: []SetKind{DigestSet, TagSet, ContentSourcePolicy}[random.IntN(3)], Source: sources[n]}
		if n%2 == 1 {
			s.Policy = NeverContactSource
			s.Kind = []SetKind{DigestSet, TagSet}[random.IntN(2)]
		}
		for range random.IntN(5) {
			if m := names[random.IntN(len(names))]; s.Policy == "" || m != s.Source {
				s.Mirrors = append(s.Mirrors, m)
			}
		}
		in.Sets = append(in.Sets, s)
	}
	some := func(list ...string) []string {
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list[:random.IntN(len(list)+1)]
	}
	switch random.IntN(4) {
	case 0:
		in.Scopes.Blocked = some("q.io", "n.io/a", "m.io", "*.lab.io")
	case 1:
		in.Scopes.Allowed = some("q.io", "m.io/lib", "Q.io", "*.io")
	case 2:
		in.Scopes.Insecure = some("m.io", "n.io/a", "q.io", "*.lab.io", "h.io:5000")
	}
	return in
}

// shuffled returns the same inputs in another order, with the entries in other objects.
func shuffled(random *rand.Rand, in Inputs) Inputs {
	in.Sets = slices.Clone(in.Sets)
	random.Shuffle(len(in.Sets), func(i, j int) { in.Sets[i], in.Sets[j] = in.Sets[j], in.Sets[i] })
	for i := range in.Sets {
		in.Sets[i].Ref = bundle.Ref{Kind: string(in.Sets[i].Kind), Name: fmt.Sprintf("object-%d", random.IntN(4))}
		in.Sets[i].Field = fmt.Sprintf("spec.entries[%d]", i)
	}
	for _, list := range []*[]string{&in.Scopes.Insecure, &in.Scopes.Blocked, &in.Scopes.Allowed} {
		*list = slices.Clone(*list)
		random.Shuffle(len(*list), func(i, j int) { (*list)[i], (*list)[j] = (*list)[j], (*list)[i] })
	}
	return in
}
