package fleettest

import (
	"context"
	"fmt"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/controller/gather"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode"
	"wmco/internal/test/simnode/cluster"
)

// newMemoryFleet joins machines in memory, many in this process. They have no SSH servers, and their time limits are a tenth of the real
// ones.
func newMemoryFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f := prepare(t)
	t.Cleanup(func() {
		for _, m := range f.started {
			must(t, m.Close())
		}
	})
	var machines []*simnode.Machine
	for i := range n {
		machines = append(machines, f.addInMemory(t, fmt.Sprintf("mem-%02d", i+1), i+1).Machine)
	}
	f.join(t, machines...)
	return f
}

// digestKey is the key of the operator's digests, made here if there is no operator yet: bundles applied before are then not applied again.
func (f *fleet) digestKey(t *testing.T) bundle.Key {
	t.Helper()
	s := secret(gather.OperatorNamespace, "windows-digest-key")
	err := f.Get(t.Context(), client.ObjectKeyFromObject(s), s)
	if apierrors.IsNotFound(err) {
		s.Data, s.Immutable = map[string][]byte{"key": []byte("a key of the storms, of 32 bytes")}, new(true)
		err = f.Create(t.Context(), s)
	}
	must(t, err)
	return s.Data["key"]
}

// fastTimes are those of machines of which each reports more often: a change is confirmed by the next sign of life.
func fastTimes() simnode.Times {
	times := simnode.FastTimes()
	times.Kubelet.Report = time.Second
	return times
}

// addInMemory starts a machine, and makes its Machine.
func (f *fleet) addInMemory(t *testing.T, name string, number int) *machine {
	t.Helper()
	address := fmt.Sprintf("10.0.9.%d", number)
	m := &machine{Machine: f.start(t, name, address), name: name, address: address}
	must(t, cluster.AddMachine(t.Context(), f.plane.Config, name, address))
	f.created = append(f.created, object(machinev1beta1.GroupVersion.String(), "Machine", "openshift-machine-api", name))
	f.machines = append(f.machines, m)
	return m
}

// start starts a new machine with what its image has. It is ended with the fleet.
func (f *fleet) start(t *testing.T, name, address string) *simnode.Machine {
	t.Helper()
	m, err := simnode.New(simnode.Options{Times: fastTimes(), Log: logs(), Facts: bundle.Facts{
		Schema: bundle.FactsSchema, HostName: name, Addresses: []string{address}, OSBuild: "10.0.20348", DefenderRunning: true, Features: []string{"Containers"},
		DefaultRoute: bundle.DefaultRoute{Address: address, Gateway: "10.0.9.254"},
	}})
	must(t, err)
	f.started = append(f.started, m)
	must(t, m.InstallPayload())
	return m
}

// join makes nodes of machines.
func (f *fleet) join(t *testing.T, machines ...*simnode.Machine) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(len(machines))*5*time.Second)
	defer stop()
	must(t, cluster.Joiner{Admin: f.plane.Config, Key: f.digestKey(t)}.Join(ctx, machines...))
}

// loseFeature takes a Windows feature from machines, which can only be added again with a boot. Their agents look at once.
func loseFeature(t *testing.T, machines ...*machine) {
	t.Helper()
	for _, m := range machines {
		must(t, m.Edit(t.Context(), func(s *simulation.State) { delete(s.Settings, simulation.SettingKey(bundle.KindFeature, "Containers")) }))
		must(t, m.StopService(t.Context(), bundle.AgentService))
		must(t, m.StartService(t.Context(), bundle.AgentService))
	}
}
