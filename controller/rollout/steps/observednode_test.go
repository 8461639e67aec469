package steps

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

// observing is an executor whose clock is set by hand, with Nodes whose versions rise.
type observing struct {
	*Executor
	t       testing.TB
	elapsed time.Duration
	nodes   map[string]windowsnode.Node
	version int
	r       Rendered
}

func newObserving(t testing.TB, names ...string) *observing {
	t.Helper()
	has, next := rendered(t, "has", bundle.ImpactRestart), rendered(t, "next", bundle.ImpactRestart)
	o := &observing{t: t, nodes: map[string]windowsnode.Node{}}
	o.r = Rendered{Number: 1, Wanted: map[string]Wanted{}, Policy: canaryFirst(), Platform: bundle.PlatformNone}
	o.Executor = o.another(notary(t))
	o.costs.layers = cacheOf(has)
	for _, name := range names {
		o.r.Wanted[name] = next
		o.change(name, func(n *corev1.Node) {
			n.UID = "1"
			n.Annotations = map[string]string{published.DesiredAnnotation: o.sign(name, has), published.ReportAnnotation: encoded(t, reported(has))}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		})
	}
	return o
}

// another returns an executor with the same clock, which has observed nothing.
func (o *observing) another(n Notary) *Executor {
	return &Executor{
		Notary: n, Namespace: namespace, Now: func() time.Time { return time.Unix(1e9, 0).Add(o.elapsed) }, Elapsed: func() time.Duration { return o.elapsed },
		Heartbeats: windowsnode.SilenceByKubelet, observations: observations{}, Drains: &Drains{}, told: newTold(), Log: logr.Discard(),
		Nodes: fake.NewClientBuilder().Build(),
	}
}

func (o *observing) sign(name string, w Wanted) string {
	o.t.Helper()
	text, err := o.Notary.SignDesired(published.NodeID{Name: name}, w.DesiredAnnotation(namespace, bundle.ImpactRestart))
	must(o.t, err)
	return text
}

func encoded(t testing.TB, r published.Report) string {
	t.Helper()
	text, err := r.Encode()
	must(t, err)
	return text
}

// change gives a Node another version.
func (o *observing) change(name string, edit func(*corev1.Node)) {
	o.version++
	before, known := o.nodes[name]
	after := &corev1.Node{}
	if known {
		after = before.Node.DeepCopy()
	}
	after.Name, after.ResourceVersion = name, strconv.Itoa(o.version)
	edit(after)
	o.nodes[name] = windowsnode.DecodeAfter(before, *after)
}

// observe observes all nodes and returns them by name, and the names of those that were observed again.
func (o *observing) observe() (map[string]plan.Node, []string) {
	o.t.Helper()
	v, err := o.observeFleet(o.t.Context(), o.nodes, o.r)
	must(o.t, err)
	all := map[string]plan.Node{}
	for _, n := range v.Nodes {
		all[n.Name] = n
	}
	return all, slices.Sorted(maps.Keys(o.observed.again))
}

// TestOnlyNodesThatChangedAreObservedAgain: that is what a call costs.
func TestOnlyNodesThatChangedAreObservedAgain(t *testing.T) {
	o := newObserving(t, "win-1", "win-2", "win-3")
	want := func(what string, names ...string) map[string]plan.Node {
		t.Helper()
		all, again := o.observe()
		if !slices.Equal(again, names) {
			t.Errorf("%s: %q are observed again, want %q", what, again, names)
		}
		return all
	}
	pause := func(n *corev1.Node) { n.Annotations[published.PausedAnnotation] = "true" }
	all := want("the first call", "win-1", "win-2", "win-3")
	if n := all["win-1"]; n.Cost != bundle.ImpactRestart || n.Published == "" || n.Wanted == n.Published {
		t.Fatalf("%+v", n)
	}
	want("nothing has changed")
	o.change("win-2", pause)
	if all = want("one has changed", "win-2"); !all["win-2"].Paused || all["win-1"].Paused {
		t.Errorf("%+v", all)
	}
	o.elapsed += time.Minute
	if all = want("time has passed"); all["win-1"].Seen.Ready != time.Minute {
		t.Errorf("it was seen Ready for %s", all["win-1"].Seen.Ready)
	}
	o.change("win-1", func(n *corev1.Node) { n.ResourceVersion = "" })
	want("a Node without a version", "win-1")
	want("a Node without a version", "win-1")
	o.change("win-1", func(n *corev1.Node) { n.UID = "2" })
	want("another Node of that name", "win-1")
	o.r.Number++
	want("another rendering", "win-1", "win-2", "win-3")
	o.r.Number = 0
	want("a rendering without a number", "win-1", "win-2", "win-3")
	want("a rendering without a number", "win-1", "win-2", "win-3")
	o.r.Number = 3
	want("another rendering", "win-1", "win-2", "win-3")
	delete(o.nodes, "win-3")
	if want("a Node is deleted"); len(o.observed.nodes) != 2 {
		t.Errorf("%d nodes are kept", len(o.observed.nodes))
	}
	o.Notary = notary(t) // which has other keys
	if all = want("other keys", "win-1", "win-2"); all["win-1"].Published != "" {
		t.Errorf("what was signed with other keys counts: %+v", all["win-1"])
	}
	unknown := rendered(t, "unknown", bundle.ImpactNone)
	o.change("win-1", func(n *corev1.Node) { n.Annotations[published.ReportAnnotation] = encoded(t, reported(unknown)) })
	want("a layer that cannot be read", "win-1")
	want("a layer that cannot be read", "win-1")
}

// TestANodeThatChangesOften makes all nodes be observed again now and then, so that what it needed does not stay.
func TestANodeThatChangesOften(t *testing.T) {
	o := newObserving(t, "win-1", "win-2")
	o.observe()
	for i := 1; i < mostObserved; i++ {
		o.change("win-1", func(*corev1.Node) {})
		if _, again := o.observe(); !slices.Equal(again, []string{"win-1"}) {
			t.Fatalf("call %d observes %q again", i, again)
		}
	}
	for _, want := range [][]string{{"win-1", "win-2"}, nil} {
		if _, again := o.observe(); !slices.Equal(again, want) {
			t.Errorf("%q are observed again, want %q", again, want)
		}
	}
}

// TestWhatIsKeptOfNodesIsWhatTheirObjectsSay after each of some thousand random events.
func TestWhatIsKeptOfNodesIsWhatTheirObjectsSay(t *testing.T) {
	names := []string{"win-1", "win-2", "win-3", "win-4", "win-5"}
	o := newObserving(t, names...)
	bundles := []Wanted{rendered(t, "has", bundle.ImpactRestart), rendered(t, "next", bundle.ImpactRestart), rendered(t, "other", bundle.ImpactDrain)}
	whole := o.another(o.Notary)
	o.costs.layers, whole.costs.layers = cacheOf(bundles...), cacheOf(bundles...)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	kept := 0
	for i := range 3000 {
		name, w := names[random.IntN(len(names))], bundles[random.IntN(len(bundles))]
		switch random.IntN(8) {
		case 0:
			o.change(name, func(n *corev1.Node) { n.Annotations[published.DesiredAnnotation] = o.sign(name, w) })
		case 1:
			r := reported(w)
			r.State = []published.State{published.StateApplied, published.StateFailed, published.StateNeedsPermission}[random.IntN(3)]
			o.change(name, func(n *corev1.Node) { n.Annotations[published.ReportAnnotation] = encoded(t, r) })
		case 2:
			o.change(name, func(n *corev1.Node) { n.Annotations[published.RetryAnnotation] = fmt.Sprint(i) })
		case 3:
			o.change(name, func(n *corev1.Node) { n.Status.Conditions[0].Status = []corev1.ConditionStatus{"True", "False"}[i%2] })
		case 4:
			text := o.nodes[names[0]].Annotations[published.DesiredAnnotation] // of another node, or an earlier one
			o.change(name, func(n *corev1.Node) { n.Annotations[published.DesiredAnnotation] = text })
		case 5:
			o.r.Number++
			o.r.Wanted[name] = w
		default:
			o.elapsed += time.Duration(random.IntN(100)) * time.Second
		}
		v, err := o.observeFleet(t.Context(), o.nodes, o.r)
		must(t, err)
		kept += len(names) - len(o.observed.again)
		r := o.r
		r.Number = 0
		want, err := whole.observeFleet(t.Context(), o.nodes, r)
		must(t, err)
		if !reflect.DeepEqual(v.Nodes, want.Nodes) || !reflect.DeepEqual(v.urgent, want.urgent) {
			t.Fatalf("seed %d, event %d:\nkept  %+v\nwhole %+v", seed, i, v.Nodes, want.Nodes)
		}
	}
	if kept < 3000 {
		t.Errorf("%d nodes of %d were as they are kept", kept, 3000*len(names))
	}
}

// TestWhatWasKeptOfANodeWronglyIsCorrected with the next whole plan, and counted.
func TestWhatWasKeptOfANodeWronglyIsCorrected(t *testing.T) {
	o := newObserving(t, "win-1", "win-2")
	counted := 0
	o.CountDifference = func() { counted++ }
	planned := func(after time.Duration, isPaused bool, differences int) {
		t.Helper()
		o.elapsed += after
		v, _, err := o.observeAndPlan(t.Context(), o.nodes, o.r)
		must(t, err)
		if v.Nodes[1].Paused != isPaused || counted != differences {
			t.Errorf("paused %v, %d differences, want %v, %d", v.Nodes[1].Paused, counted, isPaused, differences)
		}
	}
	planned(0, false, 0)
	o.observed.nodes["win-2"].node.Paused = true
	planned(time.Minute, true, 0)
	planned(wholePeriod, false, 1)
	planned(wholePeriod, false, 1)
}

// BenchmarkObserveFleet observes 1,000 nodes of which one has changed, with what is kept of the others and without it.
func BenchmarkObserveFleet(b *testing.B) {
	for _, isKept := range []bool{true, false} {
		b.Run(fmt.Sprintf("kept=%v", isKept), func(b *testing.B) {
			var names []string
			for i := range 1000 {
				names = append(names, fmt.Sprintf("win-%04d", i))
			}
			o := newObserving(b, names...)
			if !isKept {
				o.r.Number = 0
			}
			b.ReportAllocs()
			for b.Loop() {
				o.change("win-0001", func(*corev1.Node) {})
				if o.observed.isFull {
					o.observed.nodes["win-0001"].count, o.observed.isFull = 0, false
				}
				if _, err := o.observeFleet(b.Context(), o.nodes, o.r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
