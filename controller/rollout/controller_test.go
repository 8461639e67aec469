package rollout

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/inputs/deletions"
	"wmco/controller/layers"
	"wmco/controller/rollout/steps"
	"wmco/controller/windowsnode"
)

// TestUrgentLayersStayWanted while nodes were told of them and do not have them: a node may be off, and fetches them when it is back.
func TestUrgentLayersStayWanted(t *testing.T) {
	usual, urgent := bundle.Of([]byte("usual")), bundle.Of([]byte("urgent"))
	u := []layers.Wanted{{Node: "win-1", Bundle: urgent}}
	var published [][]bundle.Digest
	var ready []bool
	results := []steps.Result{{Unready: u}, {Urgent: u}, {Urgent: u}, {}, {}}
	p := &publisher{
		inputs: &debouncer{now: time.Now, settle: settle}, pauses: base.NewPauses(logr.Discard()), now: time.Now, log: logr.Discard(),
		render: func(context.Context) (rendering, error) {
			return rendering{at: time.Now(), wanted: []layers.Wanted{{Node: "win-1", Bundle: usual}}}, nil
		},
		publish: func(_ context.Context, wanted []layers.Wanted) (layers.Changes, error) {
			var list []bundle.Digest
			for _, w := range wanted {
				list = append(list, w.Bundle)
			}
			published = append(published, list)
			return layers.Changes{}, nil
		},
		roll: func(_ context.Context, r steps.Rendered) (steps.Result, error) {
			result := results[len(ready)]
			ready = append(ready, r.Ready[urgent])
			return result, nil
		},
		report:              func(context.Context, outcome) (time.Duration, error) { return 0, nil },
		removeConfirmations: func(context.Context, []windowsnode.Node) []windowsnode.Node { return nil },
	}
	for range 4 {
		if _, err := p.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	both := []bundle.Digest{usual, urgent}
	// Before it is known; as soon as it is; while it is not applied, twice; and no longer.
	if diff := cmp.Diff([][]bundle.Digest{{usual}, both, both, both, {usual}}, published); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]bool{false, true, true, true, false}, ready); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
}

// TestWhatFailsForOneNodeKeepsNoOtherWaiting: a layer that cannot be written holds its nodes, a Node that cannot be written holds itself, and a
// status that cannot be written holds nothing. The next step of the rollout comes when it is due, whatever has failed.
func TestWhatFailsForOneNodeKeepsNoOtherWaiting(t *testing.T) {
	packed, err := published.Pack(bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoined})
	if err != nil {
		t.Fatal(err)
	}
	other := packed
	other.Secrets = []published.Part{{Name: "layer-bad"}}
	good, bad := layers.Wanted{Node: "good", Cluster: &packed}, layers.Wanted{Node: "bad", Cluster: &other}
	const due = 20 * time.Second
	refused := errors.New("refused")
	for name, tt := range map[string]struct {
		// layer, node, status and untold are why the layers, a Node and the status could not be written, and the Nodes not be counted.
		layer, node, status, untold error
		held                        []bool
		err                         bool
	}{
		"nothing":               {held: []bool{false, false}},
		"a layer":               {layer: &layers.UnwrittenError{Lacking: map[string]bool{"layer-bad": true}, Err: refused}, held: []bool{false, true}},
		"the access of nodes":   {layer: &layers.UnwrittenError{Unreadable: true, Err: refused}, held: []bool{true, true}},
		"the layers, when read": {layer: refused, held: []bool{true, true}, err: true},
		"a Node":                {node: refused, held: []bool{false, false}},
		"the status":            {status: refused, held: []bool{false, false}},
		"the Nodes, when read":  {untold: refused, held: []bool{false, false}},
	} {
		var held []bool
		pauses := base.NewPauses(logr.Discard())
		p := &publisher{
			inputs: &debouncer{now: time.Now, settle: settle}, pauses: pauses, now: time.Now, log: logr.Discard(),
			render:  func(context.Context) (rendering, error) { return rendering{at: time.Now()}, nil },
			publish: func(context.Context, []layers.Wanted) (layers.Changes, error) { return layers.Changes{}, tt.layer },
			roll: func(ctx context.Context, r steps.Rendered) (steps.Result, error) {
				held = []bool{r.Held != nil && r.Held(good), r.Held != nil && r.Held(bad)}
				return steps.Result{Again: due, Failed: pauses.Try(ctx, "Node win-1", func(context.Context) error { return tt.node })}, nil
			},
			report: func(ctx context.Context, _ outcome) (time.Duration, error) {
				_ = pauses.Try(ctx, "status", func(context.Context) error { return tt.status })
				return 0, tt.untold
			},
		}
		for range 20 { // what fails has its longest pauses then
			result, err := p.Reconcile(t.Context(), reconcile.Request{})
			if diff := cmp.Diff(tt.held, held); diff != "" || (err != nil) != tt.err {
				t.Fatalf("%s: %v, held (-want +got):\n%s", name, err, diff)
			}
			if err == nil && result.RequeueAfter > due {
				t.Fatalf("%s: again in %s", name, result.RequeueAfter)
			}
		}
	}
}

// TestAConfirmationThatCannotBeRemovedKeepsNothingWaiting: it is removed later, also without another rendering.
func TestAConfirmationThatCannotBeRemovedKeepsNothingWaiting(t *testing.T) {
	used := []windowsnode.Node{windowsnode.Decode(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1"}})}
	var removed []int
	rolled := 0
	p := &publisher{
		inputs: &debouncer{now: time.Now, settle: settle}, pauses: base.NewPauses(logr.Discard()), now: time.Now, log: logr.Discard(),
		render: func(context.Context) (rendering, error) {
			return rendering{at: time.Now(), deleted: deletions.Found{Used: used}}, nil
		},
		publish: func(context.Context, []layers.Wanted) (layers.Changes, error) { return layers.Changes{}, nil },
		roll:    func(context.Context, steps.Rendered) (steps.Result, error) { rolled++; return steps.Result{}, nil },
		report:  func(context.Context, outcome) (time.Duration, error) { return 0, nil },
		removeConfirmations: func(_ context.Context, nodes []windowsnode.Node) []windowsnode.Node {
			removed = append(removed, len(nodes))
			return nodes[:max(0, 2-len(removed))] // the first try fails
		},
	}
	for range 3 {
		if _, err := p.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]int{1, 1}, removed); diff != "" || rolled != 3 {
		t.Errorf("%d rolled, removed (-want +got):\n%s", rolled, diff)
	}
}
