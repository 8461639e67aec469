package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/simulation"
)

// TestANodeWhoseNetworksAreNotKnownReportsThoseOfBefore: it would be rendered as one that has yet to join. The report names what does not answer, and
// the published bundle is followed.
func TestANodeWhoseNetworksAreNotKnownReportsThoseOfBefore(t *testing.T) {
	for name, restarts := range map[string]bool{"the same process": false, "another process": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			edit := func(change func(*simulation.State)) {
				t.Helper()
				if err := w.host.Edit(t.Context(), change); err != nil {
					t.Fatal(err)
				}
			}
			networks := []bundle.HNSNetwork{{Name: bundletest.Network, AddressPrefix: "10.132.1.0/24", ManagementIP: "10.132.1.2"}}
			edit(func(s *simulation.State) { s.Facts.Networks = networks })
			w.publish(bundle.ImpactRestart)
			if got := w.turn(); got.Facts == nil || len(got.Facts.Networks) != 1 {
				t.Fatalf("%+v", got.Facts)
			}
			edit(func(s *simulation.State) {
				s.Script.Silent = []simulation.Part{simulation.PartHNS, simulation.PartDISM}
			})
			if restarts {
				w.restart()
			}
			w.change(kubeletConf, "kind: KubeletConfiguration\nmaxPods: 10\n")
			d := w.publish(bundle.ImpactRestart)
			got := w.turn()
			if got.State != published.StateApplied || got.Applied != d.Bundle {
				t.Errorf("%s: %s", got.State, got.Message)
			}
			if diff := cmp.Diff(networks, got.Facts.Networks); diff != "" {
				t.Errorf("networks (-before +reported):\n%s", diff)
			}
			if !got.Facts.IsUnknown(bundle.PartNetworks) || !got.Facts.IsUnknown(bundle.PartFeatures) {
				t.Errorf("unknown: %+v", got.Facts.Unknown)
			}
			if last := w.cluster.reports[len(w.cluster.reports)-1]; !strings.Contains(last.Message, "DISM") {
				t.Errorf("the condition says %q", last.Message)
			}
			edit(func(s *simulation.State) { s.Script.Silent = nil })
			w.passes(w.Options.Interval)
			if got := w.lastReport(); len(got.Facts.Unknown) > 0 {
				t.Errorf("when both answer: %+v", got.Facts.Unknown)
			}
		})
	}
}
