package agent

import (
	"testing"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
)

// TestANodeThatWaitsForItsTurnNeedsNoOldLayers: the operator removed what it published for this node, because others have something newer.
// The agent restarts in between.
func TestANodeThatWaitsForItsTurnNeedsNoOldLayers(t *testing.T) {
	w := newWorld(t)
	d := w.publish(bundle.ImpactRestart)
	w.turn()
	w.cluster.parts = map[string][]byte{}
	w.restart()
	for range 5 {
		got := w.turn()
		if got.State != published.StateApplied || got.Applied != d.Bundle || len(got.Layers) != 2 {
			t.Fatalf("%s %s, %v", got.State, got.Message, got.Layers)
		}
		w.clock.Pass(10 * time.Minute)
	}
	// Its turn comes.
	w.change(mirrors, "server = \"https://mirror\"\n")
	d = w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateApplied || got.Applied != d.Bundle || w.file(mirrors) == "" {
		t.Errorf("%s %s", got.State, got.Message)
	}
}

// TestWhatTheHostDoesNotHaveIsNotSaidToBeApplied: neither a bundle that it never had, nor one after it got another one.
func TestWhatTheHostDoesNotHaveIsNotSaidToBeApplied(t *testing.T) {
	w := newWorld(t)
	first := w.publish(bundle.ImpactRestart)
	text := w.cluster.node.Desired
	w.turn()
	w.change(mirrors, "server = \"https://mirror\"\n")
	second := w.publish(bundle.ImpactRestart)
	w.turn()
	w.cluster.parts = map[string][]byte{}
	w.cluster.node.Desired = text // that of the first one
	w.restart()
	for range 5 {
		w.turn()
		w.clock.Pass(time.Minute)
	}
	if got := w.turn(); got.State != published.StateFailed || got.Desired != first.Bundle || got.Applied != second.Bundle {
		t.Errorf("%s %s, applied %s", got.State, got.Message, got.Applied.Short())
	}
}
