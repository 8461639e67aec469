package steps

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientfake "k8s.io/client-go/kubernetes/fake"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/drains"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode/heartbeat"
)

// clocks are those of an operator: what people see, which may be set, and what it observes by.
type clocks struct {
	wall    time.Time
	elapsed time.Duration
}

func (c *clocks) pass(d time.Duration) { c.wall, c.elapsed = c.wall.Add(d), c.elapsed+d }

// start makes the executor one of a process that has just been started.
func (p *plane) start(c *clocks) {
	before := p.Executor
	p.Executor = &Executor{
		Notary: before.Notary, Nodes: before.Nodes, Live: before.Live, Client: before.Client, Pods: before.Pods, Namespace: namespace, Events: before.Events, Layers: &layers.Cache{Live: before.Live, Namespace: namespace},
		Drains: &drains.Drains{Drainer: before.Drains.Drainer, Live: before.Live, Enqueue: before.Drains.Enqueue, Changed: func() {}, Events: before.Events},
		Now:    func() time.Time { return c.wall }, Elapsed: func() time.Duration { return c.elapsed },
		Heartbeats: heartbeat.NewWatch(func() time.Time { return c.wall }, func() time.Duration { return c.elapsed }).SilentFor,
	}
}

// applies is what the agent of a node reports, by a clock that is ahead of the true time.
func (p *plane) applies(name string, w layers.Wanted, at time.Time) {
	p.t.Helper()
	node := p.now(name)
	report, err := reported(w).Encode()
	must(p.t, err)
	node.Annotations[published.ReportAnnotation] = report
	must(p.t, p.Update(p.t.Context(), &node))
	for i, c := range node.Status.Conditions {
		if c.Type == published.Condition {
			node.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(at)
		}
	}
	must(p.t, p.Status().Update(p.t.Context(), &node))
}

// canaryFirst is how the tests below roll out.
func canaryFirst() plan.Policy {
	return plan.Policy{MaxUnavailable: intstr.FromInt32(1), MaxParallel: 1, Canaries: 1, FailureLimit: 1, Settle: 2 * time.Minute, Timeout: 30 * time.Minute}
}

// TestAnOperatorThatWasAwayOverNight: the canary has ended its turn without it. The rollout goes on, also if the clock of the operator was set by hours
// in that time; nothing but time has to pass for that.
func TestAnOperatorThatWasAwayOverNight(t *testing.T) {
	for i, set := range []time.Duration{0, 7 * time.Hour, -30 * time.Hour} {
		p := newPlane(t)
		has, next := rendered(t, fmt.Sprint("old", i), bundle.ImpactRestart), rendered(t, fmt.Sprint("new", i), bundle.ImpactRestart)
		p.twoNodes(has)
		c := &clocks{wall: time.Now()}
		run := func() Result {
			t.Helper()
			r, err := p.RunSteps(t.Context(), Rendered{Wanted: map[string]layers.Wanted{"win-1": next, "win-2": next}, Policy: canaryFirst()})
			must(t, err)
			if r.Fleet.Stopped != "" {
				t.Fatalf("set by %s: %s", set, r.Fleet.Message)
			}
			return r
		}
		p.start(c)
		run()
		if p.desired("win-1").Bundle != next.Bundle || p.desired("win-2").Bundle == next.Bundle {
			t.Fatal("win-1 is no canary")
		}
		p.applies("win-1", next, c.wall)
		c.pass(12 * time.Hour)
		p.start(c)
		c.wall = c.wall.Add(set)
		run() // it writes the end of the turn
		r := run()
		if r.Again <= 0 || r.Again > 2*time.Minute {
			t.Fatalf("set by %s: it is called again in %s, and the canary settles in two minutes", set, r.Again)
		}
		c.pass(r.Again)
		run() // it confirms the canary
		run()
		if p.desired("win-2").Bundle != next.Bundle {
			t.Errorf("set by %s: the rollout does not go on: %s", set, p.now("win-1").Annotations[published.RolloutAnnotation])
		}
		for _, name := range []string{"win-1", "win-2"} {
			node := p.now(name)
			must(t, p.Delete(t.Context(), &node))
		}
	}
}

// TestANodeWhoseClockIsSlowGetsItsTurn: it reports, with times of 40 minutes ago. One whose clock is ahead is silent when it is dead.
func TestANodeWhoseClockIsSlowGetsItsTurn(t *testing.T) {
	p := newPlane(t)
	has, next := rendered(t, "old", bundle.ImpactRestart), rendered(t, "new", bundle.ImpactRestart)
	p.twoNodes(has)
	c := &clocks{wall: time.Now()}
	p.start(c)
	run := func(wanted layers.Wanted) {
		t.Helper()
		policy := canaryFirst()
		policy.Canaries, policy.MaxParallel = 0, 2
		_, err := p.RunSteps(t.Context(), Rendered{Wanted: map[string]layers.Wanted{"win-1": wanted, "win-2": wanted}, Policy: policy})
		must(t, err)
	}
	p.applies("win-2", has, c.wall.Add(5*time.Hour))
	for range 5 {
		p.applies("win-1", has, c.wall.Add(-40*time.Minute))
		run(has)
		c.pass(10 * time.Minute)
	}
	run(next)
	if d := p.desired("win-1"); d.Bundle != next.Bundle || d.MaxImpact != bundle.ImpactRestart {
		t.Errorf("a node whose clock is slow is told of %s, at most %s", d.Bundle.Short(), d.MaxImpact)
	}
	if d := p.desired("win-2"); d.Bundle != next.Bundle || d.MaxImpact != bundle.ImpactNone {
		t.Errorf("a node whose agent is dead is told of %s, at most %s", d.Bundle.Short(), d.MaxImpact)
	}
	if n := p.now("win-2"); n.Status.Conditions[0].Status != corev1.ConditionTrue {
		t.Errorf("%+v", n.Status.Conditions)
	}
}

// TestAFrozenExecutorHasObservedNothing: it goes on with a cache from before.
func TestAFrozenExecutorHasObservedNothing(t *testing.T) {
	turn := plan.Turn{Bundle: bundle.Of(nil), Impact: bundle.ImpactReboot, Begun: time.Unix(1, 0), Permitted: time.Unix(1, 0)}
	n := plan.Node{Name: "win-1", Published: turn.Bundle, State: plan.State{Turn: turn}}
	var m nodeMemory
	m.observeNode(n, time.Minute)
	if got := m.observeNode(n, 9*time.Minute); got.Permitted != 8*time.Minute {
		t.Errorf("%s have been observed, want 8m", got.Permitted)
	}
	if got := m.observeNode(n, 12*time.Hour); got.Permitted > 30*time.Minute {
		t.Errorf("%s have been observed by a process that was frozen", got.Permitted)
	}
	if got := new(nodeMemory).observeNode(plan.Node{Name: "win-2", State: n.State}, 12*time.Hour); got.Permitted != 0 {
		t.Errorf("%s have been observed of another node", got.Permitted)
	}
}

// TestPodsThatWereReadyBeforeTheChangeOfACanary: which those are, the clock of its kubelet does not say.
func TestPodsThatWereReadyBeforeTheChangeOfACanary(t *testing.T) {
	pod := func(name string, ready corev1.ConditionStatus, since time.Time) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Unix(1, 0))}}
		p.Spec.NodeName, p.Status.Phase = "win-1", corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.NewTime(since)}}
		return p
	}
	now := time.Now()
	set := clientfake.NewClientset(pod("good", corev1.ConditionTrue, now.Add(-time.Hour)), pod("down", corev1.ConditionFalse, now.Add(time.Hour)))
	e := &Executor{Pods: set}
	turn := plan.Turn{Bundle: bundle.Of(nil), Impact: bundle.ImpactRestart, Canary: true, Begun: now, Permitted: now}
	must(t, e.recordReadyPods(t.Context(), plan.Step{Node: "win-1", Action: plan.ActionPublish, Bundle: turn.Bundle, Permit: bundle.ImpactRestart, State: plan.State{Turn: turn}}))
	n := plan.Node{Name: "win-1", Published: turn.Bundle, Report: published.Report{State: published.StateApplied}, State: plan.State{Turn: turn}}
	look := func(want string) {
		t.Helper()
		if got := e.unsettledPods(t.Context(), n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	look("") // the kubelet's clock is ahead: what was not Ready before seems to have ceased in the turn
	_, err := set.CoreV1().Pods("shop").Update(t.Context(), pod("good", corev1.ConditionFalse, now.Add(-time.Minute)), metav1.UpdateOptions{})
	must(t, err)
	look("these pods are not Ready: shop/good")
	e = &Executor{Pods: set} // another process goes by the times
	look("these pods are not Ready: shop/down")
}
