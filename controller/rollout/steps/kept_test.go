package steps

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/intstr"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/rollout/plan"
)

// TestAPlanThatWasKeptWronglyIsCorrected: the whole plan is compared after ten minutes and at the end of a rollout. What differs is counted once, and
// the whole plan is used.
func TestAPlanThatWasKeptWronglyIsCorrected(t *testing.T) {
	var now time.Duration
	counted := 0
	e := &Executor{Log: logr.Discard(), Elapsed: func() time.Duration { return now }, CountDifference: func() { counted++ }}
	wanted := bundle.Of([]byte("wanted"))
	crashed := []string{"kubelet"}
	canary := plan.Node{
		Name: "win-a", Wanted: wanted, Published: wanted, Permitted: bundle.ImpactRestart, Cost: bundle.ImpactNone, Ready: true,
		Report: published.Report{State: published.StateApplied, Desired: wanted, Applied: wanted, Crashed: crashed},
		State:  plan.State{Turn: plan.Turn{Bundle: wanted, Impact: bundle.ImpactRestart, Canary: true, Begun: time.Now(), Permitted: time.Now(), Ended: time.Now()}},
	}
	long := time.Hour // no limit of time is left, so that nothing is decided again because of one
	canary.Seen = plan.Seen{Permitted: long, Ended: long, Ready: long, Reported: long}
	canary.State.Elapsed.Permitted, canary.State.Elapsed.Ended = int64(long.Seconds()), int64(long.Seconds())
	f := plan.Fleet{
		Nodes: []plan.Node{canary}, Now: time.Now(),
		Policy: plan.Policy{MaxUnavailable: intstr.FromInt32(1), MaxParallel: 1, Canaries: 1, FailureLimit: 1, Settle: time.Minute, Timeout: 10 * time.Minute},
	}
	planned := func(after time.Duration, isWhole bool, differences int) {
		t.Helper()
		now += after
		got := e.planSteps(f)
		if got.Same(plan.NextSteps(f)) != isWhole || counted != differences {
			t.Fatalf("after %s: %d differences, and the plan is %+v", now, counted, got)
		}
	}
	planned(0, true, 0)
	crashed[0] = "containerd" // in place, which nothing notices: a list that is compared with itself is the same
	planned(9*time.Minute, false, 0)
	planned(time.Minute, true, 1)
	planned(time.Minute, true, 1)
	crashed[0] = "kube-proxy"
	planned(time.Minute, false, 1)
	f.Nodes[0].State.Turn.Confirmed, f.Nodes[0].Report.Crashed = time.Now(), nil // the rollout ends
	planned(time.Second, true, 1)
	if whole := e.kept.whole; whole != now {
		t.Errorf("the whole plan was made last after %s, and the rollout has ended after %s", whole, now)
	}
}
