package soak

import (
	"slices"
	"testing"
	"time"

	"wmco/internal/test/observer"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/testenv"
)

// finds is which rule finds a sabotage.
func finds() map[sabotage]string {
	return map[sabotage]string{
		tooMany: observer.RuleAway, leftCordon: observer.RuleCordon, shownSecret: observer.RuleSecret, leftLayers: ruleSecrets, withheld: ruleRender,
		leakedGoroutines: ruleGoroutines, leakedMemory: ruleMemory,
	}
}

// TestTheObserverFindsFaultsOfTheOperator gives one life of the operator after the other its faults: each is found, by its rule, in what the observer of the storms sees.
func TestTheObserverFindsFaultsOfTheOperator(t *testing.T) {
	s := newSoak(t, options{nodes: 4, seed: 1, patience: 2 * time.Minute, collection: 2 * time.Minute, boundsUsage: true})
	s.settings.maxUnavailable = 1
	s.write(t)
	s.observer.HideSecrets(firstSecret)
	s.rest(t)
	if found := s.observer.Violations(); len(found) > 0 {
		t.Fatalf("without a fault: %+v", found)
	}
	for _, life := range allSabotages() {
		t.Run(life.encode(), func(t *testing.T) {
			s.options.sabotages, s.options.patience, s.options.collection = life, 12*time.Second, 15*time.Second
			s.operator.kill()
			s.live(t)
			s.setProxy(t, firstSecret)
			s.loseFeature(t, s.machines[cluster.NodeName(3)])
			must(t, testenv.Eventually(t.Context(), "the violations", func() bool {
				s.rest(t)
				found := s.observer.Violations()
				return !slices.ContainsFunc(life, func(fault sabotage) bool {
					return !slices.ContainsFunc(found, func(v observer.Violation) bool { return v.Rule == finds()[fault] })
				})
			}))
			// It heals without the faults, and the observer forgets what it has found.
			s.operator.kill()
			s.options.sabotages, s.options.patience = nil, 2*time.Minute
			s.live(t)
			s.observer.ForgetViolations()
			for _, n := range s.observer.Snapshot() {
				s.edit(t, n.Name, `{"metadata":{"annotations":{"example.com/proxy":null}}}`)
			}
			s.setProxy(t, s.password())
			s.rest(t)
			s.observer.ForgetViolations()
		})
	}
}
