package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"wmco/bundle"
)

// measuredNode has turns behind it: reboots of 10 minutes, restarts of one.
func measuredNode(name string, edits ...edit) Node {
	n := node(name, edits...)
	for _, x := range []struct {
		impact bundle.Impact
		took   int
	}{{reboot, 10}, {restart, 1}} {
		n.State.Past = append(n.State.Past, Turn{Bundle: digest(0, name), Impact: x.impact, Begun: ago(5000), Permitted: ago(5000), Ended: ago(5000 - x.took), Result: applied})
	}
	return n
}

func TestPredict(t *testing.T) {
	f := Fleet{Policy: policy(), Now: noon()}
	for i := range 4 {
		f.Nodes = append(f.Nodes, measuredNode(fmt.Sprintf("win-%d", i), wants(reboot)))
	}
	f.Nodes = append(f.Nodes, measuredNode("win-paused", wants(reboot), func(n *Node) { n.Paused = true }))
	before := f.Nodes[0]
	got := PredictRollout(ElapsedByStamps(f), LearnDurations(f))
	var want []Change
	for i := range 4 {
		c := Change{Node: fmt.Sprintf("win-%d", i), Impact: reboot, Begins: time.Duration(i) * 10 * time.Minute, Ends: time.Duration(i+1) * 10 * time.Minute}
		if i == 0 {
			c.Canary = true
		} else {
			c.Begins, c.Ends = c.Begins+2*time.Minute, c.Ends+2*time.Minute // the canary settles
		}
		want = append(want, c)
	}
	if diff := cmp.Diff(want, got.Order); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.Nodes != 4 || got.Drains != 4 || got.Boots != 4 || got.Restarts != 0 || got.Takes != 42*time.Minute || len(got.Unmeasured) > 0 {
		t.Errorf("%+v", got)
	}
	if len(got.Left) != 1 || got.Left[0].Node != "win-paused" {
		t.Errorf("left: %+v", got.Left)
	}
	if diff := cmp.Diff(before, f.Nodes[0]); diff != "" {
		t.Errorf("the fleet was changed:\n%s", diff)
	}
}

func TestPredictWithoutHistory(t *testing.T) {
	f := Fleet{Policy: policy(), Now: noon(), Nodes: []Node{node("a", wants(restart)), node("b", wants(restart)), node("c", wants(none))}}
	for i := range f.Nodes {
		f.Nodes[i].State = State{}
	}
	got := PredictRollout(ElapsedByStamps(f), LearnDurations(f))
	if got.Restarts != 2 || got.Drains != 0 || got.Nodes != 3 || len(got.Left) > 0 {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]bundle.Impact{none, restart}, got.Unmeasured); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPredictFromTheMiddle begins with a node in its turn and one that waits for it.
func TestPredictFromTheMiddle(t *testing.T) {
	moving := measuredNode("a", drained, given(reboot, 4), reporting(applying, ""), func(n *Node) { n.State.Slot.Taken = ago(4) })
	f := Fleet{Policy: policy(), Now: noon(), Nodes: []Node{moving, measuredNode("b", wants(reboot)), measuredNode("z", done)}}
	if got := PredictRollout(ElapsedByStamps(f), LearnDurations(f)); got.Takes != 16*time.Minute || len(got.Left) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestPredictSaysWhatBlocks(t *testing.T) {
	off := node("b")
	off.Ready = false
	f := Fleet{Policy: policy(), Now: noon(), Nodes: []Node{node("a", wants(drain)), off}}
	got := PredictRollout(ElapsedByStamps(f), LearnDurations(f))
	if got.Nodes != 0 || len(got.Left) != 1 || got.Left[0].Reason != ReasonUnavailable {
		t.Errorf("%+v", got)
	}
}

func TestLearn(t *testing.T) {
	other := node("b", func(n *Node) { n.Group.OSBuild = "10.0.17763" })
	other.State.Past = []Turn{{Impact: reboot, Begun: ago(100), Ended: ago(80), Result: applied, Bundle: "x"}}
	bad := node("c")
	bad.State.Past = []Turn{
		{Impact: reboot, Begun: ago(900), Ended: ago(100), Result: applied, Bundle: "x"},
		{Impact: reboot, Begun: ago(100), Ended: ago(99), Result: rolledBack, Bundle: "x"},
		{Impact: reboot, Begun: ago(100), Result: applied, Bundle: "x"},
	}
	d := LearnDurations(Fleet{Policy: policy(), Now: noon(), Nodes: []Node{measuredNode("a"), other, bad}})
	for _, tt := range []struct {
		build  string
		impact bundle.Impact
		want   time.Duration
		ok     bool
	}{
		{"10.0.20348", reboot, 10 * time.Minute, true},
		{"10.0.17763", reboot, 20 * time.Minute, true},
		{"10.0.26100", restart, time.Minute, true},
		{"10.0.20348", drain, 0, false},
	} {
		if got, ok := d.MedianOf(Group{bundle.PlatformAWS, tt.build}, tt.impact); got != tt.want || ok != tt.ok {
			t.Errorf("%s %s: %s, %t", tt.build, tt.impact, got, ok)
		}
	}
}

// TestPredictionsEnd simulates random fleets: every prediction ends, and without faults it leaves no node behind.
func TestPredictionsEnd(t *testing.T) {
	for n := 1; n <= 12; n++ {
		for limit := 1; limit <= 3; limit++ {
			p := policy()
			p.MaxUnavailable = intstr.FromInt32(int32(limit))
			f := Fleet{Policy: p, Now: noon()}
			for i := range n {
				f.Nodes = append(f.Nodes, measuredNode(fmt.Sprintf("win-%02d", i), wants([]bundle.Impact{none, restart, drain, reboot, ""}[i%5])))
			}
			if got := PredictRollout(ElapsedByStamps(f), LearnDurations(f)); got.Nodes != n || len(got.Left) > 0 {
				t.Fatalf("%d nodes, limit %d: %+v", n, limit, got)
			}
		}
	}
}

func BenchmarkPredict(b *testing.B) {
	for _, n := range []int{100, 1000} {
		f := Fleet{Policy: policy(), Now: noon()}
		f.Policy.MaxUnavailable = intstr.FromString("10%")
		for i := range n {
			f.Nodes = append(f.Nodes, measuredNode(fmt.Sprintf("win-%04d", i), wants(reboot)))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if got := PredictRollout(ElapsedByStamps(f), LearnDurations(f)); got.Boots != n {
					b.Fatal(got.Boots)
				}
			}
		})
	}
}

func BenchmarkNext(b *testing.B) {
	f := Fleet{Policy: policy(), Now: noon()}
	for i := range 1000 {
		f.Nodes = append(f.Nodes, measuredNode(fmt.Sprintf("win-%04d", i), wants(reboot)))
	}
	f = ElapsedByStamps(f)
	for b.Loop() {
		NextSteps(f)
	}
}
