package world

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/published"
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

// TestABootOfTheMomentInWhichItIsPermitted breaks no rule, and one that is not permitted does.
func TestABootOfTheMomentInWhichItIsPermitted(t *testing.T) {
	for _, permitted := range []bool{true, false} {
		inWorld(t, options{nodes: 1, seed: 1, patience: 15 * time.Minute, collection: 30 * time.Minute}, func(t *testing.T, w *world) {
			name := cluster.NodeName(0)
			w.putMirrorSet(t, 0)
			w.rest(t)
			booted := make(chan struct{})
			go func() { w.judgeBoot(name); close(booted) }()
			synctest.Wait()
			if permitted {
				w.trail.mu.Lock()
				w.trail.node(w.observer.Snapshot()[name].UID).desired.MaxImpact = bundle.ImpactReboot
				w.trail.mu.Unlock()
			}
			<-booted
			if found := w.observer.Violations(); (len(found) == 0) != permitted {
				t.Errorf("permitted %t: %+v", permitted, found)
			}
		})
	}
}

// TestABootThatIsPermittedAgain breaks a rule where the permission has been taken back, not where others have replaced it.
func TestABootThatIsPermittedAgain(t *testing.T) {
	boot, forged := bundle.Of([]byte("now")), bundle.Of([]byte("forged"))
	for name, tt := range map[string]struct {
		was, last bundle.Digest
		want      string
	}{
		"it is there":             {boot, boot, ""},
		"others have replaced it": {forged, boot, ""},
		"it was taken back":       {"", "", "it was permitted before"},
		"both":                    {forged, "", "it was permitted before"},
	} {
		c := change{last: &told{desired: published.Desired{Boot: tt.last}, boots: map[bundle.Digest]bool{boot: true}}}
		c.before.Annotations = map[string]string{published.RebootAnnotation: "now"}
		c.was.Boot, c.is.Boot = tt.was, boot
		if got := c.bootsWrongly(); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestPodsThatStay keep a node from its permission, unless they were told to end and no kubelet ends them.
func TestPodsThatStay(t *testing.T) {
	now := metav1.NewTime(time.Now())
	for name, tt := range map[string]struct {
		ready  corev1.ConditionStatus
		ending *metav1.Time
		want   string
	}{
		"it runs":                       {corev1.ConditionTrue, nil, "pod web-1 runs on it"},
		"it ends":                       {corev1.ConditionTrue, &now, "pod web-1 runs on it"},
		"it runs on a host that is off": {corev1.ConditionUnknown, nil, "pod web-1 runs on it"},
		"it ends on a host that is off": {corev1.ConditionUnknown, &now, ""},
	} {
		c := change{begins: true, is: published.Desired{MaxImpact: bundle.ImpactReboot}}
		c.before.Name, c.before.Spec.Unschedulable, c.state.Slot.Held = "win-1", true, true
		c.before.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: tt.ready}}
		pod := podOn("win-1", 1)
		pod.DeletionTimestamp = tt.ending
		if got := c.isNotDrained([]corev1.Pod{*pod}); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
