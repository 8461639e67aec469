package plan

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestEveryFieldOfANodeMakesAnotherNode: a field that sameNode leaves out would keep a decision about a node that has changed.
func TestEveryFieldOfANodeMakesAnotherNode(t *testing.T) {
	var same Node
	if !sameNode(&same, &Node{}) {
		t.Fatal("two nodes without anything differ")
	}
	changed := 0
	var visit func(path string, v reflect.Value, whole *Node)
	visit = func(path string, v reflect.Value, whole *Node) {
		if path == ".Seen" {
			return
		}
		if v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]() {
			for i := range v.NumField() {
				visit(path+"."+v.Type().Field(i).Name, v.Field(i), whole)
			}
			return
		}
		before := reflect.New(v.Type()).Elem()
		before.Set(v)
		setOther(t, path, v)
		if sameNode(whole, &Node{}) || sameNode(&Node{}, whole) {
			t.Errorf("%s differs, and the nodes count as the same", path)
		}
		v.Set(before)
		changed++
	}
	var n Node
	visit("", reflect.ValueOf(&n).Elem(), &n)
	if changed < 60 {
		t.Errorf("%d fields were changed", changed)
	}
}

// setOther gives a field another value than zero.
func setOther(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("other")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		v.Set(reflect.ValueOf(noon()))
	default:
		t.Fatalf("%s is a %s", path, v.Kind())
	}
}

// TestKeptIsCheckedAgainstTheWhole: a decision that is kept wrongly is seen by who compares the plans.
func TestKeptIsCheckedAgainstTheWhole(t *testing.T) {
	f := waitingFleet(20)
	var k Kept
	if diff := cmp.Diff(NextSteps(f), k.NextSteps(f)); diff != "" {
		t.Fatalf("-whole +kept:\n%s", diff)
	}
	k.nodes["win-0007"].decided.status.Message = "another message"
	if got := k.NextSteps(f); got.Same(NextSteps(f)) {
		t.Error("what was kept is not used, or the plans are not compared")
	}
	k.Forget()
	if got := k.NextSteps(f); !got.Same(NextSteps(f)) {
		t.Error("what was forgotten is used")
	}
}

// waitingFleet has so many nodes that wait for a canary.
func waitingFleet(n int) Fleet {
	f := Fleet{Policy: policy(), Now: noon()}
	f.Policy.Canaries = 1
	f.Nodes = append(f.Nodes, node("win-0000", wants(restart), given(restart, 1), says(applying, ""), func(n *Node) { n.State.Turn.Canary = true }))
	for i := range n - 1 {
		f.Nodes = append(f.Nodes, node(fmt.Sprintf("win-%04d", i+1), wants(restart)))
	}
	return ElapsedByStamps(f)
}

// TestAPlanForNodesThatWaitAllocatesLittle: one of five thousand nodes reports, and the others wait as before.
func TestAPlanForNodesThatWaitAllocatesLittle(t *testing.T) {
	const size = 5000
	f := waitingFleet(size)
	var k Kept
	k.NextSteps(f)
	reports := 0
	kept := testing.AllocsPerRun(5, func() {
		reports++
		f.Nodes[size/2].Report.Repaired = reports
		k.NextSteps(f)
	})
	whole := testing.AllocsPerRun(1, func() { NextSteps(f) })
	t.Logf("allocations: %.0f whole, %.0f kept", whole, kept)
	if kept > 100 || whole < size {
		t.Errorf("%.0f allocations, at most 100; %.0f of the whole plan", kept, whole)
	}
	if got := k.NextSteps(f); !got.Same(NextSteps(f)) || got.Fleet.Waiting != size-1 {
		t.Errorf("%+v", got.Fleet)
	}
}

// BenchmarkPlan is the plan for 5,000 nodes of which one reports and the others wait: of all, and with what is kept.
func BenchmarkPlan(b *testing.B) {
	const size = 5000
	for name, next := range map[string]func(Fleet) Plan{"whole": NextSteps, "kept": new(Kept).NextSteps} {
		b.Run(name, func(b *testing.B) {
			f := waitingFleet(size)
			next(f)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				f.Nodes[size/2].Report.Repaired = i
				next(f)
			}
		})
	}
}

// TestAnEventElsewhereChangesWhatIsKept: what the decision about a node has consulted is another one, although the node itself is as it was.
func TestAnEventElsewhereChangesWhatIsKept(t *testing.T) {
	canary := node("a", wants(drain), given(drain, 10), says(applied, ""), canary, with(func(n *Node) { n.State.Turn.Ended = ago(9) }))
	f := Fleet{Policy: policy(), Now: noon(), Nodes: []Node{
		canary, node("b", wants(drain)), node("c", wants(drain)), node("d", wants(restart), with(func(n *Node) { n.Target = digest(3, "") })),
		node("e", wants(restart), with(func(n *Node) { n.Target = digest(3, "") })),
	}}
	var k Kept
	seen := map[string]string{}
	for _, event := range []struct {
		name   string
		change func(*Fleet)
	}{
		{"nothing", func(*Fleet) {}},
		{"the canary is confirmed", func(f *Fleet) { f.Nodes[0].State.Turn.Confirmed = noon() }},
		{"a node is no longer Ready", func(f *Fleet) { f.Nodes[0].Ready = false }},
		{"another one is not, either", func(f *Fleet) { f.Nodes[3].Ready = false }},
		{"both are Ready", func(f *Fleet) { f.Nodes[0].Ready, f.Nodes[3].Ready = true, true }},
		{"the limit is another one", func(f *Fleet) { f.Policy.MaxUnavailable = intstr.FromInt32(2) }},
		{"the rollout is paused", func(f *Fleet) { f.Policy.Paused = true }},
		{"the rollout goes on", func(f *Fleet) { f.Policy.Paused = false }},
		{"the canary is rolled back", func(f *Fleet) { f.Nodes[0].Report.State = rolledBack }},
		{"a node was deleted", func(f *Fleet) { f.Nodes = f.Nodes[1:] }},
		{"a node comes", func(f *Fleet) { f.Nodes = append(f.Nodes, node("f", wants(drain))) }},
	} {
		event.change(&f)
		now := ElapsedByStamps(f)
		whole, kept := NextSteps(now), k.NextSteps(now)
		if diff := cmp.Diff(whole, kept); diff != "" {
			t.Fatalf("%s: -whole +kept:\n%s", event.name, diff)
		}
		for _, n := range kept.Nodes {
			if n.Node == "c" {
				seen[n.Message] = event.name
			}
		}
	}
	if len(seen) < 4 {
		t.Errorf("of a node that never changed was said: %v", seen)
	}
}

// TestTimeChangesWhatIsKept: a decision that a limit of time changes is made again when it has passed, and times of day are those of the call.
func TestTimeChangesWhatIsKept(t *testing.T) {
	var k Kept
	f := Fleet{Policy: policy(), Now: noon(), Nodes: []Node{
		node("a", wants(restart), given(restart, 1), says(applying, ""), func(n *Node) { n.State.Turn.Canary = true }), node("b", wants(restart)),
	}}
	phases := map[Phase]bool{}
	for minute := range 45 {
		now := f
		now.Now = noon().Add(time.Duration(minute) * time.Minute)
		now = ElapsedByStamps(now)
		whole, kept := NextSteps(now), k.NextSteps(now)
		if diff := cmp.Diff(whole, kept); diff != "" {
			t.Fatalf("minute %d: -whole +kept:\n%s", minute, diff)
		}
		phases[kept.Nodes[0].Phase] = true
	}
	if !phases[PhaseUpdating] || !phases[PhaseDegraded] {
		t.Errorf("%v", phases)
	}
}
