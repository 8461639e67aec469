package steps

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
)

const namespace = "openshift-windows-machine-config-operator"

// rendered is the bundle of a node whose kubelet reads a file.
func rendered(t testing.TB, text string, impact bundle.Impact) layers.Wanted {
	t.Helper()
	layer := func(kind bundle.LayerKind, files ...bundle.File) bundle.Layer {
		return bundle.Layer{Schema: bundle.Schema, Kind: kind, Stage: bundle.StageJoined, Files: files}
	}
	content := bundle.Bundle{Cluster: layer(bundle.LayerCluster, bundle.File{
		Path: `C:\k\kubelet.conf`, Digest: bundle.Of([]byte(text)), Size: int64(len(text)), Access: bundle.AccessUsers, Impact: impact,
		Content: bundle.Content{Data: []byte(text)},
	}), Node: layer(bundle.LayerNode)}
	w, err := layers.PackBundle("win-1", content)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// cacheOf returns a cache that has the layers of bundles, and a cluster without any.
func cacheOf(bundles ...layers.Wanted) *layers.Cache {
	cache := &layers.Cache{Live: fake.NewClientBuilder().Build(), Namespace: namespace}
	for _, w := range bundles {
		cache.AddLayer(w.Cluster.Digest, w.Content.Cluster)
		cache.AddLayer(w.Own.Digest, w.Content.Node)
	}
	return cache
}

func reportOf(w layers.Wanted) published.Report {
	return published.Report{State: published.StateApplied, Applied: w.Bundle, Layers: []bundle.Digest{w.Cluster.Digest, w.Own.Digest}}
}

func nodeWith(t *testing.T, w layers.Wanted) corev1.Node {
	t.Helper()
	text, err := notary(t).SignDesired(published.NodeID{Name: "win-1"}, w.DesiredAnnotation(namespace, bundle.ImpactNone))
	if err != nil {
		t.Fatal(err)
	}
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1", Annotations: map[string]string{published.DesiredAnnotation: text}}}
}

// TestTheCostOfAChange is read from the layers that a node has, which are asked for once.
func TestTheCostOfAChange(t *testing.T) {
	has, next := rendered(t, "old", bundle.ImpactRestart), rendered(t, "new", bundle.ImpactRestart)
	build := fake.NewClientBuilder()
	for _, p := range has.Cluster.Secrets {
		build.WithObjects(layers.Secret{Part: p, Label: has.Cluster.Label()}.SecretObject(namespace))
	}
	reads := 0
	cache, kept := &layers.Cache{Namespace: namespace, Live: interceptor.NewClient(build.Build(), interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
			reads++
			return w.List(ctx, l, o...)
		},
	})}, compared{}
	cost := func(r published.Report) bundle.Impact {
		c := newComparison(cache, kept, map[string]layers.Wanted{"win-1": next}, nil)
		defer func() { kept = c.found; cache.DropUnused() }()
		before, ok := c.appliedBundle(t.Context(), r, windowsnode.Decode(nodeWith(t, has)))
		if !ok {
			return ""
		}
		return c.impactOf(before, r.Layers, next)
	}
	for range 3 {
		if got := cost(reportOf(has)); got != bundle.ImpactRestart {
			t.Errorf("impact %q", got)
		}
	}
	if reads != 1 {
		t.Errorf("%d reads", reads)
	}
	if got := cost(reportOf(next)); got != bundle.ImpactNone {
		t.Errorf("impact %q of what the node has", got)
	}
	gone := reportOf(rendered(t, "collected", bundle.ImpactNone))
	foreign := reportOf(has)
	foreign.Applied = next.Bundle
	for name, r := range map[string]published.Report{"nothing is applied": {}, "a layer that is gone": gone, "a report that contradicts itself": foreign} {
		if got := cost(r); got != "" {
			t.Errorf("%s: impact %q", name, got)
		}
	}
}

func TestAnAnnotationThatLeadsElsewhereIsDamaged(t *testing.T) {
	w, other := rendered(t, "a", bundle.ImpactNone), rendered(t, "b", bundle.ImpactNone)
	of := func(w layers.Wanted, namespace string) published.Desired {
		return w.DesiredAnnotation(namespace, bundle.ImpactReboot)
	}
	later := of(w, namespace)
	later.Term, later.Sequence, later.PermitFor, later.NodeName = 7, 7, 7, "win-1"
	for name, tt := range map[string]struct {
		on   published.Desired
		want bool
	}{
		"the same": {of(w, namespace), false}, "of another term": {later, false}, "another bundle": {of(other, namespace), false}, "another namespace": {of(w, "default"), true}, "nothing": {published.Desired{}, false},
	} {
		if got := isDamaged(tt.on, w, namespace); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestUrgentThatANodeWasToldOf: its layers are of no rendering, so the publisher has to be told that they are needed.
func TestUrgentThatANodeWasToldOf(t *testing.T) {
	wanted, urgent := rendered(t, "wanted", bundle.ImpactDrain), rendered(t, "urgent", bundle.ImpactNone)
	node := func(told bundle.Digest) plan.Node {
		return plan.Node{Name: "win-1", Wanted: wanted.Bundle, Published: told}
	}
	v := snapshot{urgent: map[string]layers.Wanted{"win-1": urgent}}
	for name, tt := range map[string]struct {
		node    plan.Node
		written map[string]windowsnode.Node
		want    int
	}{
		"it was told":               {node(urgent.Bundle), nil, 1},
		"it is told now":            {node("before"), map[string]windowsnode.Node{"win-1": windowsnode.Decode(nodeWith(t, urgent))}, 1},
		"it has not been told":      {node("before"), nil, 0},
		"it was told of all of it":  {node(wanted.Bundle), nil, 0},
		"it is told of all of it":   {node(urgent.Bundle), map[string]windowsnode.Node{"win-1": windowsnode.Decode(nodeWith(t, wanted))}, 0},
		"nothing of it is urgent":   {plan.Node{Name: "win-2", Published: urgent.Bundle}, nil, 0},
		"all that it wants is that": {plan.Node{Name: "win-1", Wanted: urgent.Bundle, Published: urgent.Bundle}, nil, 0},
	} {
		v.Nodes = []plan.Node{tt.node}
		e := &Executor{}
		for name, node := range tt.written {
			e.memory.ofNode(name).written = &node
		}
		if got := e.publishedUrgent(v); len(got) != tt.want {
			t.Errorf("%s: %d", name, len(got))
		}
	}
}

// TestTheProvenanceIsAskedForWhereANodeHasFailed, and for no other node: renderings are kept without it.
func TestTheProvenanceIsAskedForWhereANodeHasFailed(t *testing.T) {
	has, next := rendered(t, "old", bundle.ImpactRestart), rendered(t, "new", bundle.ImpactRestart)
	content := *next.Content
	content.Provenance, next.Content = nil, &content
	var asked []string
	causes := func(node string) bundle.Provenance {
		asked = append(asked, node)
		all := bundle.Provenance{}
		for _, id := range content.Cluster.IDs() {
			all[id] = []bundle.Ref{{Kind: "ImageDigestMirrorSet", Name: "cause"}}
		}
		return all
	}
	failed := plan.Node{Name: "win-2", Published: next.Bundle, Wanted: next.Bundle, Report: reportOf(has)}
	failed.Report.State, failed.Report.Desired = published.StateRolledBack, next.Bundle
	nodes := []plan.Node{{Name: "win-1", Published: next.Bundle, Wanted: next.Bundle, Report: reportOf(next)}, failed}
	got := snapshot{Fleet: plan.Fleet{Nodes: nodes}}.failureCause(cacheOf(has), Rendered{Wanted: map[string]layers.Wanted{"win-1": next, "win-2": next}, Provenance: causes})
	if !strings.Contains(got, "(from ImageDigestMirrorSet/cause)") || !slices.Equal(asked, []string{"win-2"}) {
		t.Errorf("%q, asked for %q", got, asked)
	}
}

// TestWhatIsBlamed: an object is named where the host applied the bundle and does not work with it, and for nothing else.
func TestWhatIsBlamed(t *testing.T) {
	has, next := rendered(t, "old", bundle.ImpactRestart), rendered(t, "new", bundle.ImpactRestart)
	for _, tt := range []struct {
		state published.State
		fault published.Fault
		want  bool
	}{
		{published.StateRolledBack, "", true}, // of an older agent
		{published.StateRolledBack, published.FaultInput, true},
		{published.StateRolledBack, published.FaultAPI, true}, // the change may have cut the host off
		{published.StateRolledBack, published.FaultHost, false},
		{published.StateFailed, published.FaultInput, true},
		{published.StateFailed, published.FaultLayer, false},
		{published.StateFailed, published.FaultDisk, false},
		{published.StateFailed, published.FaultAPI, false},
		{published.StateFailed, published.FaultHost, false},
		{published.StateFailed, "", false},
		{published.StateApplied, "", false},
	} {
		n := plan.Node{Name: "win-1", Published: next.Bundle, Wanted: next.Bundle, Report: reportOf(has)}
		n.Report.State, n.Report.Fault, n.Report.Desired = tt.state, tt.fault, next.Bundle
		got := snapshot{Fleet: plan.Fleet{Nodes: []plan.Node{n}}}.failureCause(cacheOf(has), Rendered{Wanted: map[string]layers.Wanted{"win-1": next}})
		if (got != "") != tt.want {
			t.Errorf("%s, fault %q: %q", tt.state, tt.fault, got)
		}
	}
}

// TestAChangeOfTheLayerThatAllShareIsComparedOnce: for all nodes whose own layer stays. Where that changes too, it counts for the node alone.
func TestAChangeOfTheLayerThatAllShareIsComparedOnce(t *testing.T) {
	has, next := rendered(t, "old", bundle.ImpactRestart), rendered(t, "new", bundle.ImpactRestart)
	ofNode := func(w layers.Wanted, text string) layers.Wanted {
		t.Helper()
		content := *w.Content
		content.Node.Files = []bundle.File{{
			Path: `C:\k\own`, Digest: bundle.Of([]byte(text)), Size: int64(len(text)), Access: bundle.AccessUsers, Impact: bundle.ImpactReboot, Content: bundle.Content{Data: []byte(text)},
		}}
		packed, err := layers.PackBundle("win-1", content)
		must(t, err)
		return packed
	}
	c := newComparison(cacheOf(), compared{}, nil, nil)
	for i, tt := range []struct {
		from, to string
		want     bundle.Impact
		compared int
	}{
		{"a", "a", bundle.ImpactRestart, 1}, {"b", "b", bundle.ImpactRestart, 1}, {"a", "b", bundle.ImpactReboot, 2}, {"b", "a", bundle.ImpactReboot, 3}, {"b", "b", bundle.ImpactRestart, 3},
	} {
		from, to := ofNode(has, tt.from), ofNode(next, tt.to)
		got := c.impactOf(*from.Content, reportOf(from).Layers, to)
		if whole := bundle.Diff(*from.Content, *to.Content).Impact(); got != tt.want || got != whole || len(c.found.impacts) != tt.compared {
			t.Errorf("%d: %s, of whole bundles %s, want %s; %d comparisons", i, got, whole, tt.want, len(c.found.impacts))
		}
	}
}
