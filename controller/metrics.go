package controller

import (
	"context"

	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"wmco/controller/base"
	"wmco/controller/join"
	"wmco/controller/metrics"
	"wmco/controller/publish"
	"wmco/render"
)

// said is what is told how things go, for people and Prometheus alone.
type said struct {
	counters *metrics.Counters
	unjoined *join.Unjoined
}

func newSaid(o Options) said {
	backings := []string{string(render.BackingMachine), string(render.BackingInstance)}
	return said{counters: metrics.NewCounters(metrics.Known{Version: o.Version, Backings: backings, Reasons: join.FailureReasons(), Traffic: o.Traffic}), unjoined: &join.Unjoined{}}
}

// addMetrics has the metrics of the operator served.
func addMetrics(m base.Manager, o Options, s said) error {
	return m.Add(&metrics.Registration{Registry: registry.Registry, Counters: s.counters, Collector: &metrics.Collector{
		Nodes: m.GetClient(), Decoded: m.Decoded, Live: m.GetAPIReader(), Namespace: o.Namespace, Unjoined: s.unjoined.ByReason, Now: o.Now, Silence: o.Silence,
	}})
}

type publishFunc = func(context.Context, []publish.Wanted) (publish.Changes, error)

// counted counts the bytes that are published. A call that fails in the middle is repeated with what is left, and counts that twice.
func (s said) counted(do publishFunc) publishFunc {
	return func(ctx context.Context, wanted []publish.Wanted) (publish.Changes, error) {
		changes, err := do(ctx, wanted)
		n := 0
		for _, secret := range changes.Create {
			n += len(secret.Data)
		}
		s.counters.Published.Add(float64(n))
		return changes, err
	}
}
