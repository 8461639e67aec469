package agent

import (
	"testing"
	"time"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/simulation"
)

// beforeNetworks is a host that has reported that it has no networks, has them now, and for which a bundle is published that was rendered before.
func beforeNetworks(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.edit(func(s *simulation.State) { s.Facts.Networks = nil })
	w.publish(bundle.ImpactRestart)
	if got := w.turn(); got.State != published.StateApplied || len(got.Facts.Networks) != 0 {
		t.Fatalf("%s %s: %+v", got.State, got.Message, got.Facts)
	}
	w.edit(func(s *simulation.State) { s.Facts.Networks = []bundle.HNSNetwork{{Name: bundletest.Network}} })
	w.host.ClearLog()
	w.change(kubeletConf, "rendered without networks\n")
	w.publish(bundle.ImpactRestart)
	return w
}

// TestABundleFromBeforeTheNetworksIsNotBegun: the operator learns of the networks by the report, and publishes another one.
func TestABundleFromBeforeTheNetworksIsNotBegun(t *testing.T) {
	w := beforeNetworks(t)
	w.waits.at = func(time.Duration) {
		if len(w.lastReport().Facts.Networks) == 1 {
			w.change(kubeletConf, "rendered with networks\n")
			w.publish(bundle.ImpactRestart)
			w.setNode(w.cluster.node, w.changed)
		}
	}
	w.turn()
	if got := w.starts("kubelet"); got != 0 || w.file(kubeletConf) == "rendered without networks\n" {
		t.Fatalf("the kubelet was started %d times, with %q", got, w.file(kubeletConf))
	}
	w.waits.at = nil
	if got := w.turn(); got.State != published.StateApplied || w.file(kubeletConf) != "rendered with networks\n" || w.starts("kubelet") != 1 {
		t.Errorf("%s %s: %d starts with %q", got.State, got.Message, w.starts("kubelet"), w.file(kubeletConf))
	}
}

// TestABundleIsBegunIfNoOtherIsPublished: the networks changed nothing in it.
func TestABundleIsBegunIfNoOtherIsPublished(t *testing.T) {
	w := beforeNetworks(t)
	begun := w.clock.SinceBoot()
	if got := w.turn(); got.State != published.StateApplied || w.starts("kubelet") != 1 {
		t.Errorf("%s %s, %d starts", got.State, got.Message, w.starts("kubelet"))
	}
	if waited := w.clock.SinceBoot() - begun; waited < replacedWithin || waited > 2*replacedWithin {
		t.Errorf("waited for %s", waited)
	}
}
