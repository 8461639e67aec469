package rollout

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/base"
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
		inputs: &debouncer{now: time.Now, settle: settle}, now: time.Now, log: logr.Discard(),
		render: func(context.Context) (rendering, error) {
			return rendering{at: time.Now(), wanted: []steps.Wanted{{Wanted: layers.Wanted{Node: "win-1", Bundle: usual}}}}, nil
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
		tell:   func(context.Context, outcome) (time.Duration, error) { return 0, nil },
		forget: func(context.Context, []windowsnode.Node) error { return nil },
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

// TestWhatFailsForOneNodeKeepsNoOtherWaiting: a layer that cannot be written holds its nodes, and a status that cannot be written holds
// nothing.
func TestWhatFailsForOneNodeKeepsNoOtherWaiting(t *testing.T) {
	packed, err := published.Pack(bundle.Layer{Schema: bundle.Schema, Kind: bundle.LayerCluster, Stage: bundle.StageJoined})
	if err != nil {
		t.Fatal(err)
	}
	other := packed
	other.Secrets = []published.Part{{Name: "layer-bad"}}
	good, bad := layers.Wanted{Node: "good", Cluster: &packed}, layers.Wanted{Node: "bad", Cluster: &other}
	var failed, untold error
	var held []bool
	p := &publisher{
		inputs: &debouncer{now: time.Now, settle: settle}, now: time.Now, log: logr.Discard(),
		render: func(context.Context) (rendering, error) { return rendering{at: time.Now()}, nil },
		publish: func(context.Context, []layers.Wanted) (layers.Changes, error) {
			return layers.Changes{}, failed
		},
		roll: func(_ context.Context, r steps.Rendered) (steps.Result, error) {
			held = []bool{r.Held != nil && r.Held(good), r.Held != nil && r.Held(bad)}
			return steps.Result{}, nil
		},
		tell:   func(context.Context, outcome) (time.Duration, error) { return 0, untold },
		forget: func(context.Context, []windowsnode.Node) error { return nil },
	}
	refused := errors.New("refused")
	for name, tt := range map[string]struct {
		failed, untold error
		held           []bool
		err            bool
	}{
		"nothing":             {nil, nil, []bool{false, false}, false},
		"a layer":             {&layers.UnwrittenError{Lacking: map[string]bool{"layer-bad": true}, Err: refused}, nil, []bool{false, true}, true},
		"the access of nodes": {refused, nil, []bool{true, true}, true},
		"the status":          {nil, refused, []bool{false, false}, false},
	} {
		failed, untold = tt.failed, tt.untold
		result, err := p.Reconcile(t.Context(), reconcile.Request{})
		if diff := cmp.Diff(tt.held, held); diff != "" || (err != nil) != tt.err {
			t.Errorf("%s: %v, held (-want +got):\n%s", name, err, diff)
		}
		if tt.untold != nil && result.RequeueAfter > base.LastRetry {
			t.Errorf("%s: again in %s", name, result.RequeueAfter)
		}
	}
}
