package heartbeat

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

func noon() time.Time { return time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC) }

// process is an operator with its two clocks.
type process struct {
	*Watch
	clock   time.Time
	elapsed time.Duration
}

func newProcess() *process {
	p := &process{clock: noon()}
	p.Watch = NewWatch(func() time.Time { return p.clock }, func() time.Duration { return p.elapsed })
	return p
}

// Silence is Watch.SilentFor of a Node.
func (p *process) Silence(n corev1.Node) time.Duration {
	return p.Watch.SilentFor(windowsnode.Decode(n))
}

// isSilent reports whether the agent of a Node counts as silent.
func (p *process) isSilent(n corev1.Node) bool {
	return windowsnode.Silence(p.Watch.SilentFor).IsSilent(windowsnode.Decode(n))
}

func (p *process) pass(d time.Duration) { p.clock, p.elapsed = p.clock.Add(d), p.elapsed+d }

// passLooking lets minutes pass, in each of which it looks at a node.
func (p *process) passLooking(minutes int, n corev1.Node) {
	for range minutes {
		p.Silence(n)
		p.pass(time.Minute)
	}
}

// node is Ready, and its agent and kubelet have given signs of life at these times by its clock.
func node(name string, agent, kubelet time.Time) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "1"}}
	n.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(kubelet)},
		{Type: published.Condition, LastHeartbeatTime: metav1.NewTime(agent)},
	}
	return n
}

// TestSilenceIsWhatThisProcessHasSeen: whatever the clock of the node shows, and whatever happens to the operator's.
func TestSilenceIsWhatThisProcessHasSeen(t *testing.T) {
	for name, skew := range map[string]time.Duration{"right": 0, "slow": -40 * time.Minute, "ahead": 3 * time.Hour} {
		p := newProcess()
		var beat time.Time
		reports := func() { beat = p.clock.Add(skew) }
		silent := func() bool { return p.isSilent(node("a", beat, p.clock.Add(skew))) }
		reports()
		for range 12 { // two hours
			p.pass(10 * time.Minute)
			reports()
			if silent() {
				t.Fatalf("%s: a node that reports is silent", name)
			}
		}
		p.clock = p.clock.Add(5 * time.Hour) // it is set
		if silent() {
			t.Errorf("%s: a node is silent because the clock of the operator was set", name)
		}
		p.clock = p.clock.Add(-9 * time.Hour)
		for range 3 {
			silent()
			p.pass(10 * time.Minute)
		}
		if silent() {
			t.Errorf("%s: it is silent too early", name)
		}
		p.pass(time.Second)
		if !silent() {
			t.Errorf("%s: a dead agent is not silent", name)
		}
		reports()
		if silent() {
			t.Errorf("%s: it is silent although it reports again", name)
		}
	}
}

func TestSilenceBeginsWithTheProcess(t *testing.T) {
	p := newProcess()
	old := node("a", noon().Add(-12*time.Hour), noon())
	if got := p.Silence(old); got != 0 {
		t.Errorf("silent for %s at the start", got)
	}
	p.passLooking(31, old)
	if !p.isSilent(old) {
		t.Error("an agent that is dead since before the start is never silent")
	}
	off := old.DeepCopy()
	off.Status.Conditions[0].Status = corev1.ConditionUnknown
	if p.isSilent(*off) {
		t.Error("the agent of a host that is off is silent")
	}
	joining := old.DeepCopy()
	joining.Status.Conditions = joining.Status.Conditions[:1]
	p.passLooking(31, *joining)
	if p.isSilent(*joining) {
		t.Error("an agent that has never reported is silent")
	}
	again := old.DeepCopy()
	again.UID = "2"
	if p.Silence(*again) != 0 {
		t.Error("another Node of that name was not seen before")
	}
	p.passLooking(31, *again)
	p.RetainNodes(nil)
	if p.Silence(*again) != 0 {
		t.Error("a node that was away is remembered")
	}
}

// TestAFrozenProcessHasObservedNothing: what it reads first may be a Node from before.
func TestAFrozenProcessHasObservedNothing(t *testing.T) {
	p := newProcess()
	n := node("a", noon(), noon())
	p.passLooking(10, n)
	p.pass(7 * time.Hour)
	if p.isSilent(n) {
		t.Error("all agents are silent when the process goes on")
	}
	p.passLooking(31, n)
	if !p.isSilent(n) {
		t.Error("a dead agent is not silent")
	}
}

func TestWhoseClocksDiffer(t *testing.T) {
	p := newProcess()
	skews := map[string]time.Duration{"ahead": 3 * time.Hour, "behind": -time.Hour, "right": 0, "slightly": 4 * time.Minute, "late": 0}
	look := func(without ...string) {
		for name, by := range skews {
			if len(without) > 0 && name == without[0] {
				continue
			}
			p.Silence(node(name, p.clock.Add(by-5*time.Second), p.clock.Add(by)))
		}
	}
	text := func() (list []string) {
		for _, s := range p.ClockSkews() {
			list = append(list, s.String())
		}
		return list
	}
	look()
	// What was written before this process began may be old.
	if diff := cmp.Diff([]string{"ahead (3h0m ahead)"}, text()); diff != "" {
		t.Errorf("at the start (-want +got):\n%s", diff)
	}
	p.pass(10 * time.Minute)
	look()
	p.pass(10 * time.Minute)
	look("late")
	want := []string{"ahead (3h0m ahead)", "behind (1h0m behind)"}
	if diff := cmp.Diff(want, text()); diff != "" {
		t.Errorf("after two reports (-want +got):\n%s", diff)
	}
	// One report that was seen late is no slow clock.
	p.Silence(node("late", p.clock.Add(-9*time.Minute), p.clock))
	if diff := cmp.Diff(want, text()); diff != "" {
		t.Errorf("a report that was seen late (-want +got):\n%s", diff)
	}
	skews["ahead"], skews["behind"] = 0, 0 // they are set right
	for range 2 {
		p.pass(10 * time.Minute)
		look()
	}
	if got := text(); got != nil {
		t.Errorf("clocks that were set right differ: %s", got)
	}
}
