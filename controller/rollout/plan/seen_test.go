package plan

import (
	"strings"
	"testing"
	"time"

	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// process is an operator that observes one node, whose clock may show any time.
type process struct {
	watch   Watch
	began   bool
	clock   time.Time
	elapsed time.Duration
}

// look decides about a node some time after the last time.
func (o *process) look(n Node, passed time.Duration) Plan {
	if !o.began {
		o.began, passed = true, 0
	}
	o.clock, o.elapsed = o.clock.Add(passed), o.elapsed+passed
	n.Seen = o.watch.ObserveNode(n, passed)
	return NextSteps(Fleet{Nodes: []Node{n}, Policy: policy(), Now: o.clock})
}

// only returns the one step of a plan.
func only(t *testing.T, p Plan, want Action) Step {
	t.Helper()
	if len(p.Steps) != 1 || p.Steps[0].Action != want {
		t.Fatalf("want the step %s, got %+v: %+v", want, p.Steps, p.Nodes)
	}
	return p.Steps[0]
}

// TestAnOperatorThatWasAwayConfirmsAHealthyCanary: the canary has ended its turn over night, or while the operator ran and could not read it. The end is
// written, then it is observed for as long as any other.
func TestAnOperatorThatWasAwayConfirmsAHealthyCanary(t *testing.T) {
	for name, before := range map[string]time.Duration{"it was not running": 0, "it could not reach the API server": 12 * time.Hour} {
		n := node("a", wants(restart), given(restart, 12*60), canary)
		o := &process{clock: noon()}
		if before > 0 {
			o.look(n, 0)
		}
		reporting(applied, "")(&n)
		ended := only(t, o.look(n, before), ActionRelease)
		if n.State = ended.State; n.State.Turn.Ended.IsZero() || n.State.Elapsed.Ended != 0 {
			t.Errorf("%s: the end of the turn is not written: %+v", name, n.State)
		}
		o.look(n, 0)
		if p := o.look(n, time.Minute); len(p.Steps) > 0 || p.Nodes[0].Reason != ReasonSettling || p.Wake != time.Minute {
			t.Errorf("%s: %+v, wake in %s", name, p.Nodes, p.Wake)
		}
		only(t, o.look(n, time.Minute), ActionConfirm)
	}
}

// TestAnOperatorThatWasAwayFailsNoNode: what lasted while it was away has not been observed.
func TestAnOperatorThatWasAwayFailsNoNode(t *testing.T) {
	for name, n := range map[string]Node{
		"its agent works":         node("a", drained, given(reboot, 12*60), reporting(applying, "")),
		"it boots":                node("a", drained, given(reboot, 12*60), reporting(published.StateRebootPending, ""), func(n *Node) { n.Ready = false }),
		"it is not Ready yet":     node("a", drained, given(reboot, 12*60), reporting(applied, ""), func(n *Node) { n.Ready = false }),
		"its pods are not back":   node("a", done, canary, func(n *Node) { n.State.Turn.Ended, n.Unsettled = ago(12*60), "3 pods are not Ready" }),
		"its drain has not ended": node("a", wants(drain), claim(12*60, true)),
	} {
		o := &process{clock: noon()}
		p := o.look(n, 0)
		if p.Nodes[0].Phase == PhaseDegraded || p.Fleet.Stopped != "" || len(p.Steps) > 0 && p.Steps[0].Action == ActionRelease {
			t.Errorf("%s: %+v %+v", name, p.Nodes, p.Steps)
		}
		p = o.look(n, 33*time.Minute) // now it has been observed
		if p.Nodes[0].Phase != PhaseDegraded && (len(p.Steps) == 0 || p.Steps[0].Action != ActionRelease) {
			t.Errorf("%s, and is late: %+v %+v", name, p.Nodes, p.Steps)
		}
	}
}

// TestAClockThatIsSetDecidesNothing: the steps, and when the next decision is due, are the same as with a clock that is right.
func TestAClockThatIsSetDecidesNothing(t *testing.T) {
	for name, n := range map[string]Node{
		"its agent works":       node("a", drained, given(reboot, 5), reporting(applying, "")),
		"a canary settles":      node("a", done, canary, func(n *Node) { n.State.Turn.Ended = ago(1) }),
		"it is drained":         node("a", wants(drain), claim(5, true)),
		"its drain waits":       node("a", wants(drain), func(n *Node) { n.State.Postponed = ago(-5) }),
		"it is not Ready again": node("a", wants(none), given(restart, 1), reporting(applied, ""), func(n *Node) { n.Ready = false }),
	} {
		for _, by := range []time.Duration{6 * time.Hour, -6 * time.Hour} {
			right, wrong := &process{clock: noon()}, &process{clock: noon()}
			right.look(n, 0)
			wrong.look(n, 0)
			wrong.clock = wrong.clock.Add(by)
			want, got := right.look(n, time.Minute), wrong.look(n, time.Minute)
			if len(want.Steps) != len(got.Steps) || want.Wake != got.Wake || want.Wake <= 0 || want.Wake > policy().Timeout || want.Nodes[0].Reason != got.Nodes[0].Reason {
				t.Errorf("%s, the clock is set by %s: %+v %+v in %s, not %+v %+v in %s", name, by, got.Nodes, got.Steps, got.Wake, want.Nodes, want.Steps, want.Wake)
			}
		}
	}
}

// TestAnOperatorThatIsRestartedOftenEndsATurn: what has elapsed is written a few times, and each process counts on from there.
func TestAnOperatorThatIsRestartedOftenEndsATurn(t *testing.T) {
	n := node("a", drained, given(reboot, 0), reporting(applying, ""))
	writes := 0
	for range 6 { // each runs for ten minutes
		o := &process{clock: noon()}
		for range 11 {
			p := o.look(n, time.Minute)
			for _, s := range p.Steps {
				if s.Action != ActionNote {
					t.Fatalf("%+v", s)
				}
				n.State = s.State
				writes++
			}
			if p.Nodes[0].Phase == PhaseDegraded {
				if !strings.Contains(p.Nodes[0].Message, "not finished within 30m, the limit rollout.nodeTimeout") || writes != 3 {
					t.Errorf("%+v after %d writes", p.Nodes, writes)
				}
				return
			}
		}
	}
	t.Errorf("the turn does not end; %d writes", writes)
}

// TestACanaryIsObservedByOneOperatorAfterTheOther: the time in which none looked is not counted, and neither is that before it ceased to be Ready.
func TestACanaryIsObservedByOneOperatorAfterTheOther(t *testing.T) {
	p := policy()
	p.Settle = 24 * time.Hour
	look := func(w *Watch, n Node, passed time.Duration) Plan {
		n.Seen = w.ObserveNode(n, passed)
		return NextSteps(Fleet{Nodes: []Node{n}, Policy: p, Now: noon()})
	}
	n := node("a", done, canary)
	n.State = only(t, look(&Watch{}, n, 0), ActionRelease).State
	writes := 0
	for range 4 { // each runs for ten hours
		w := &Watch{}
		look(w, n, 0)
		for range 20 {
			got := look(w, n, 30*time.Minute)
			if len(got.Steps) == 0 {
				continue
			}
			if n.State = got.Steps[0].State; got.Steps[0].Action == ActionConfirm {
				if writes > 4 {
					t.Errorf("%d writes", writes)
				}
				return
			}
			writes++
		}
		if away := n; writes == 1 {
			away.ReadySince = noon()
			if got := look(&Watch{}, away, 0); got.Wake < 6*time.Hour || away.State.Elapsed.Ready == 0 {
				t.Errorf("a canary that ceased to be Ready has been observed for a while: %+v", got.Nodes)
			}
		}
	}
	t.Errorf("the canary is never confirmed: %+v", n.State)
}

// TestADrainThatGoesOnIsNotWrittenAgain until a quarter of its time has passed: it is asked for with each decision.
func TestADrainThatGoesOnIsNotWrittenAgain(t *testing.T) {
	n := node("a", wants(drain), claim(0, true))
	before, err := n.State.Encode()
	if err != nil {
		t.Fatal(err)
	}
	o := &process{clock: noon()}
	writes := 0
	for range 29 {
		s := only(t, o.look(n, time.Minute), ActionDrain)
		text, err := s.State.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if text != before {
			writes++
		}
		before, n.State = text, s.State
	}
	if writes != 3 {
		t.Errorf("%d writes in 28 minutes, want 3", writes)
	}
	o.look(n, time.Minute)
	if s := only(t, o.look(n, time.Minute), ActionRelease); s.State.Elapsed.Postponed != 0 {
		t.Errorf("the pause until its next drain has begun before: %+v", s.State.Elapsed)
	}
}

// TestAnotherTryIsGivenWhateverFailed: each kind of failure, once for each value of the annotation.
func TestAnotherTryIsGivenWhateverFailed(t *testing.T) {
	off := func(n *Node) { n.Ready = false }
	for name, n := range map[string]Node{
		"not done in time":      node("a", drained, given(reboot, 31), reporting(applying, "")),
		"a restart is not done": node("a", wants(restart), given(restart, 31), reporting(applying, "")),
		"not Ready in time":     node("a", drained, given(reboot, 31), reporting(applied, ""), off),
		"not settled":           node("a", done, canary, func(n *Node) { n.State.Turn.Ended, n.Unsettled = ago(40), "3 pods are not Ready" }),
		"not Ready after it":    node("a", done, given(restart, 40), reporting(applied, ""), canary, off),
		"services have crashed": node("a", done, canary, func(n *Node) { n.State.Turn.Ended, n.Report.Crashed = ago(1), []string{"kubelet"} }),
		"rolled back":           node("a", wants(restart), given(restart, 31), reporting(rolledBack, "")),
		"the agent tries again": node("a", wants(restart), given(restart, 31), reporting(failing, "")),
	} {
		if got := stamped(Fleet{Nodes: []Node{n}, Policy: policy(), Now: noon()}); got.Nodes[0].Phase != PhaseDegraded && got.Fleet.Stopped == "" {
			t.Errorf("%s: it has not failed: %+v", name, got.Nodes)
		}
		n.Retry = "2026-01-01T12:00:00Z"
		s := only(t, stamped(Fleet{Nodes: []Node{n}, Policy: policy(), Now: noon()}), ActionNote)
		n.State = s.State
		n.Report.Crashed = nil // the agent forgets them when it is asked
		if n.Report.State != applied {
			n.Report.State = applying
		}
		got := NextSteps(ElapsedByStamps(Fleet{Nodes: []Node{n}, Policy: policy(), Now: noon()}))
		if got.Nodes[0].Phase == PhaseDegraded || got.Fleet.Stopped != "" {
			t.Errorf("%s: another try is not given: %+v", name, got.Nodes)
		}
		n.State.Turn.Permitted = ago(90)
		if n.Unsettled != "" {
			n.State.Turn.Ended = ago(90)
		}
		if name == "services have crashed" {
			continue // it is healthy now
		}
		if got := stamped(Fleet{Nodes: []Node{n}, Policy: policy(), Now: noon()}); got.Fleet.Stopped == "" && got.Nodes[0].Phase != PhaseDegraded {
			t.Errorf("%s: the same value gives its time again and again: %+v", name, got.Nodes)
		}
	}
}

// TestWhatAnOlderOperatorWrote is read, and begins to elapse when it is seen.
func TestWhatAnOlderOperatorWrote(t *testing.T) {
	s, err := windowsnode.DecodeRolloutState(`{"schema":1,"turn":{"bundle":"` + string(digest(2, "a")) + `","impact":"reboot","begun":"2026-01-01T00:00:00Z","permitted":"2026-01-01T00:00:00Z"},"claim":{"taken":"2026-01-01T00:00:00Z","held":true}}`)
	if err != nil {
		t.Fatal(err)
	}
	n := node("a", drained, given(reboot, 0), reporting(applying, ""), func(n *Node) { n.State = s })
	o := &process{clock: noon()}
	if p := o.look(n, 0); len(p.Steps) > 0 || p.Nodes[0].Reason != ReasonApplying || p.Nodes[0].Phase != PhaseUpdating {
		t.Errorf("%+v %+v", p.Nodes, p.Steps)
	}
	if p := o.look(n, 31*time.Minute); p.Nodes[0].Phase != PhaseDegraded {
		t.Errorf("%+v", p.Nodes)
	}
}
