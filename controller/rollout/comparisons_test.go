package rollout

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"wmco/controller/rollout/plan"
	"wmco/controller/rollout/steps"
)

// fleetOf rolls a fleet of so many nodes.
func fleetOf(nodes int) func(context.Context, steps.Rendered) (steps.Result, error) {
	return func(context.Context, steps.Rendered) (steps.Result, error) {
		return steps.Result{Plan: plan.Plan{Nodes: make([]plan.Status, nodes)}}, nil
	}
}

// TestManyNodesAreComparedSeldom: agents report for a minute. A few nodes are compared once a second, many less often.
func TestManyNodesAreComparedSeldom(t *testing.T) {
	for nodes, want := range map[int]int{3: 60, 500: 60, 1000: 30, 2500: 12, 100_000: 6} {
		synctest.Test(t, func(t *testing.T) {
			w := work(t)
			w.roll = fleetOf(nodes)
			w.inputs.requestRendering(w.queue)
			pass(settle)
			for range 6000 {
				w.inputs.requestComparison(w.queue)
				time.Sleep(10 * time.Millisecond)
			}
			if got := w.publications - 1; got < want-1 || got > want+1 {
				t.Errorf("%d nodes were compared %d times in a minute, want %d", nodes, got, want)
			}
			pass(longestComparisonPause)
			before := w.publications
			pass(time.Minute)
			if w.publications != before {
				t.Errorf("%d nodes were compared although nothing happened", nodes)
			}
		})
	}
}

// TestOneReportIsComparedASecondLater: in a large fleet too, where nothing has happened before.
func TestOneReportIsComparedASecondLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := work(t)
		w.roll = fleetOf(5000)
		w.inputs.requestRendering(w.queue)
		pass(time.Minute)
		before := w.publications
		w.inputs.requestComparison(w.queue)
		pass(settle)
		if w.publications != before+1 {
			t.Errorf("compared %d times a second after a report", w.publications-before)
		}
	})
}

// TestAChangeDoesNotWaitForThePauseOfComparisons: rendered bundles are published at once, however many nodes there are.
func TestAChangeDoesNotWaitForThePauseOfComparisons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := work(t)
		w.roll = fleetOf(5000)
		for range 5 {
			w.inputs.requestRendering(w.queue)
			pass(settle)
		}
		if len(w.renders) != 5 || w.publications != 5 {
			t.Errorf("rendered at %v, published %d times", w.renders, w.publications)
		}
	})
}
