package steps

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/drains"
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
	o.r = Rendered{Wanted: map[string]layers.Wanted{}, Policy: canaryFirst(), Platform: bundle.PlatformNone}
	o.Executor = o.another(notary(t))
	o.Layers = cacheOf(has)
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
		Heartbeats: windowsnode.SilenceByKubelet, Drains: &drains.Drains{}, Log: logr.Discard(),
		Nodes: fake.NewClientBuilder().Build(),
	}
}

func (o *observing) sign(name string, w layers.Wanted) string {
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

// observe observes all nodes and returns them by name.
func (o *observing) observe() map[string]plan.Node {
	o.t.Helper()
	v, err := o.observeFleet(o.t.Context(), o.nodes, o.r)
	must(o.t, err)
	all := map[string]plan.Node{}
	for _, n := range v.Nodes {
		all[n.Name] = n
	}
	return all
}

// TestEachCallObservesWhatNodesSayNow: between two calls only layers, elapsed times and what was signed are kept.
func TestEachCallObservesWhatNodesSayNow(t *testing.T) {
	o := newObserving(t, "win-1", "win-2")
	all := o.observe()
	if n := all["win-1"]; n.Cost != bundle.ImpactRestart || n.Published == "" || n.Wanted == n.Published {
		t.Fatalf("%+v", n)
	}
	o.change("win-2", func(n *corev1.Node) { n.Annotations[published.PausedAnnotation] = "true" })
	o.elapsed += time.Minute
	if all = o.observe(); !all["win-2"].Paused || all["win-1"].Paused || all["win-1"].Seen.Ready != time.Minute {
		t.Errorf("%+v", all)
	}
	unknown := rendered(t, "unknown", bundle.ImpactNone)
	o.change("win-1", func(n *corev1.Node) { n.Annotations[published.ReportAnnotation] = encoded(t, reported(unknown)) })
	if all = o.observe(); all["win-1"].Cost != "" {
		t.Errorf("the cost of an unknown layer is %q", all["win-1"].Cost)
	}
	o.Notary = notary(t) // which has other keys
	if all = o.observe(); all["win-2"].Published != "" {
		t.Errorf("what was signed with other keys counts: %+v", all["win-2"])
	}
	delete(o.nodes, "win-1")
	if all = o.observe(); len(all) != 1 || len(o.memory.nodes) != 1 {
		t.Errorf("of a deleted Node is kept: %+v", o.memory.nodes)
	}
}

// BenchmarkObserveFleet observes 1,000 nodes of which one has changed.
func BenchmarkObserveFleet(b *testing.B) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("win-%04d", i))
	}
	o := newObserving(b, names...)
	b.ReportAllocs()
	for b.Loop() {
		o.change("win-0001", func(*corev1.Node) {})
		if _, err := o.observeFleet(b.Context(), o.nodes, o.r); err != nil {
			b.Fatal(err)
		}
	}
}
