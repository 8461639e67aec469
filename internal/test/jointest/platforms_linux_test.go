package jointest_test

import (
	"fmt"
	"testing"

	"wmco/internal/hostsim/simulation"
)

// TestAMachineOfEachPlatformBecomesANode: machine-api names hosts in another way on each, and the kubelet has other arguments.
func TestAMachineOfEachPlatformBecomesANode(t *testing.T) {
	w := newWorld(t)
	for i, platform := range []string{"AWS", "Azure", "GCP", "VSphere", "Nutanix", "None"} {
		w.patchCluster("Infrastructure", fmt.Sprintf(`{"status":{"platform":%[1]q,"platformStatus":{"type":%[1]q}}}`, platform), `{"status":{"platform":"None","platformStatus":{"type":"None"}}}`)
		name, address := fmt.Sprintf("machine-p%d", i), fmt.Sprintf("192.0.2.%d", 141+i)
		m := w.machine(name, address)
		must(t, m.Edit(t.Context(), func(s *simulation.State) { s.Facts.MetadataName = name }))
		w.machineObject(name, address)
		stop := w.operate()
		w.allJoin([]string{name})
		t.Log(platform)
		stop()
	}
}
