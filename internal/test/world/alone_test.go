package world

import (
	"testing"
	"time"

	"wmco/bundle/published"
)

// TestNodesRepairThemselvesWithoutTheAPIServer: they restore what they have from their own store, and follow the cluster again
// afterwards.
func TestNodesRepairThemselvesWithoutTheAPIServer(t *testing.T) {
	inWorld(t, options{nodes: 3, seed: 1, patience: time.Hour, collection: time.Hour}, func(t *testing.T, w *world) {
		w.server.SetDown(true)
		for _, m := range w.named(isOn) {
			w.drift(t, m)
		}
		pause(w.ctx, 5*time.Minute)
		for _, m := range w.named(isOn) {
			if hasText(drifting, "something else")(m) {
				t.Errorf("%s has not restored %s", m.name, drifting)
			}
		}
		w.server.SetDown(false)
		w.putMirrorSet(t, 1)
		w.rest(t)
		for _, m := range w.named(isOn) {
			n := w.observer.Snapshot()[m.name]
			if r, err := published.DecodeReport(n.Annotations[published.ReportAnnotation]); err != nil || r.Repaired == 0 {
				t.Errorf("%s reports %d repairs: %v", m.name, r.Repaired, err)
			}
		}
		w.print(t)
	})
}
