package jointest_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/windowsnode/record"
	"wmco/internal/hostsim/simulation"
)

// TestHostsBehindTranslatedAddresses: two sites with one private network. The hosts report the same address, which is none of those at which they
// are reached, or is that of another host. Their kubelets could not announce the address of the entry: nothing is done to them, and this is reported.
func TestHostsBehindTranslatedAddresses(t *testing.T) {
	w := newWorld(t)
	w.machine("instance-direct", "192.0.2.123")
	entries := map[string]string{"instance-a": "192.0.2.121", "instance-b": "192.0.2.122", "instance-c": "192.0.2.124"}
	says := map[string]string{"instance-a": "10.0.0.5", "instance-b": "10.0.0.5", "instance-c": "192.0.2.123"}
	for name, address := range entries {
		m := w.machine(name, address)
		must(t, m.Edit(t.Context(), func(s *simulation.State) { s.Facts.Addresses = []string{says[name]} }))
	}
	w.instances("192.0.2.123")
	w.operate()
	w.allJoin([]string{"instance-direct"})
	check := w.untouched("instance-direct", record.OfEntry("192.0.2.123"))
	for name, address := range entries {
		w.addEntry(address)
		w.awaitEvent("InstanceSetupFailure", configure.InstancesName, address+": ", "AddressNotOnHost", says[name], "fix: use the host's own address")
		if m := w.machines[name]; len(m.Starts()) > 0 || w.hasNode(name) {
			t.Errorf("the host at %s was changed: services %v", address, m.Starts())
		}
	}
	check()
	if log := w.log.String(); strings.Contains(log, "approved a certificate signing request") && strings.Contains(log, "host=192.0.2.121") {
		t.Error("a host behind a translated address got a certificate")
	}
	// As in the fix: the host has the address of its entry.
	must(t, w.machines["instance-a"].Edit(t.Context(), func(s *simulation.State) { s.Facts.Addresses = []string{"192.0.2.121"} }))
	var config corev1.ConfigMap
	must(t, w.Get(t.Context(), client.ObjectKey{Namespace: gather.OperatorNamespace, Name: configure.InstancesName}, &config))
	w.touch(&config)
	w.allJoin([]string{"instance-a"})
}
