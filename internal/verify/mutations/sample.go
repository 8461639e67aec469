package mutations

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// ChooseNamed returns the mutations with these names.
func ChooseNamed(all []Mutation, names []string) ([]Mutation, error) {
	var chosen []Mutation
	for _, name := range names {
		i := slices.IndexFunc(all, func(m Mutation) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no mutation %q; fix: choose one that -list prints", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// ChooseSample returns up to n mutations whose tests run in memory. The same seed chooses the same ones.
func ChooseSample(all []Mutation, n int, seed string) []Mutation {
	fast := slices.DeleteFunc(slices.Clone(all), func(m Mutation) bool { return m.Needs != NeedNothing })
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed)) // a hash takes everything
	random := rand.New(rand.NewPCG(h.Sum64(), 0))
	random.Shuffle(len(fast), func(i, j int) { fast[i], fast[j] = fast[j], fast[i] })
	return fast[:min(n, len(fast))]
}
