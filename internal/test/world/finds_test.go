package world

import (
	"slices"
	"testing"
	"time"

	"wmco/internal/test/observer"
	"wmco/internal/test/simnode/cluster"
)

// finds is which rule finds a sabotage.
func finds() map[sabotage]string {
	return map[sabotage]string{
		tooMany: observer.RuleAway, leftCordon: observer.RuleCordon, shownSecret: observer.RuleSecret, leftLayers: ruleSecrets, withheld: ruleRender,
		leakedGoroutines: ruleGoroutines, leakedMemory: ruleMemory,
	}
}

// TestTheObserverFindsFaultsOfTheOperator gives one life of the operator after the other its faults: each is found, by its rule.
func TestTheObserverFindsFaultsOfTheOperator(t *testing.T) {
	for _, life := range allSabotages() {
		t.Run(life.encode(), func(t *testing.T) {
			inWorld(t, options{nodes: 4, seed: 1, patience: 15 * time.Minute, collection: 30 * time.Minute, boundsUsage: true}, func(t *testing.T, w *world) {
				w.settings.maxUnavailable = 1
				w.write(t)
				w.observer.HideSecrets(firstSecret)
				w.rest(t)
				if found := w.observer.Violations(); len(found) > 0 {
					t.Fatalf("without a fault: %+v", found)
				}
				w.options.sabotages = life
				w.operator.kill()
				w.live()
				w.rest(t)
				w.setProxy(t, firstSecret)
				w.loseFeature(t, w.machines[cluster.NodeName(3)])
				w.rest(t)
				found := w.observer.Violations()
				for _, fault := range life {
					if !slices.ContainsFunc(found, func(v observer.Violation) bool { return v.Rule == finds()[fault] }) {
						t.Errorf("%s: not found in %+v", fault, found)
					}
				}
			})
		})
	}
}
