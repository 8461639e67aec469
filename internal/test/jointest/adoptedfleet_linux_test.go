package jointest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/configure"
	"wmco/controller/gather"
	"wmco/controller/hosts"
	"wmco/controller/node"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/existing"
	"wmco/internal/test/seed"
)

// mixedFleet are nodes of all generations, one after the other. Some have more than a generation leaves.
func (w *world) mixedFleet(size int) []existingNode {
	w.t.Helper()
	generations := existing.Generations()
	spoiled := map[int]func(m *joinedMachine){
		1: func(m *joinedMachine) { // a damaged file
			must(w.t, m.WriteFile(w.t.Context(), `C:\k\kubelet-ca.crt`, bundle.AccessUsers, []byte("damaged")))
		},
		2: func(m *joinedMachine) { // another proxy than the cluster has now
			must(w.t, m.Edit(w.t.Context(), func(s *simulation.State) {
				s.Put(plan.Setting{Kind: bundle.KindVariable, Name: "HTTPS_PROXY", Value: "http://old.example.com:3128", Present: true})
			}))
		},
		3: func(m *joinedMachine) { // a service that an administrator has stopped
			must(w.t, m.StopService(w.t.Context(), "csi-proxy"))
		},
	}
	var list []existingNode
	for i := range size {
		n := existingNode{name: fmt.Sprintf("instance-v%d", i), address: fmt.Sprintf("198.51.100.%d", 10+i), generation: generations[i%len(generations)].Name, spoil: spoiled[i%7]}
		if i%4 == 3 {
			n.name = fmt.Sprintf("machine-v%d", i)
		}
		n.drained = i%5 == 4
		list = append(list, n)
	}
	return list
}

// price is what an adoption costs.
type price struct {
	mu sync.Mutex
	// notReady is for how long each node was not Ready, cordoned are those that were.
	notReady map[string]time.Duration
	cordoned map[string]bool
}

// watchPrice looks at nodes again and again until the test ends.
func (w *world) watchPrice(names []string) *price {
	w.t.Helper()
	const every = 250 * time.Millisecond
	p := &price{notReady: map[string]time.Duration{}, cordoned: map[string]bool{}}
	stopped := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		last := time.Now()
		for {
			select {
			case <-stopped:
				return
			case <-time.After(every):
			}
			var all corev1.NodeList
			if w.List(w.t.Context(), &all) != nil {
				continue // the next look counts for the time of both
			}
			passed := time.Since(last)
			last = last.Add(passed)
			p.note(all.Items, names, passed)
		}
	})
	w.t.Cleanup(func() { close(stopped); watching.Wait() })
	return p
}

// note counts one look, for the time since the one before.
func (p *price) note(nodes []corev1.Node, names []string, passed time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range nodes {
		if !slices.Contains(names, n.Name) {
			continue
		}
		if !isReady(&n) {
			p.notReady[n.Name] += passed
		}
		p.cordoned[n.Name] = p.cordoned[n.Name] || n.Spec.Unschedulable
	}
}

// boots returns how often a machine has booted.
func (m *joinedMachine) boots(t *testing.T) int {
	t.Helper()
	var n int
	must(t, m.Edit(t.Context(), func(s *simulation.State) { n = s.Boot }))
	return n
}

// TestAFleetOfAllGenerationsIsAdopted: by the setting, while operators are killed, beside a host that is off and one that has another key. No host boots,
// and only those are drained whose plan needs it.
func TestAFleetOfAllGenerationsIsAdopted(t *testing.T) {
	w := newWorld(t)
	fleet := w.mixedFleet(number(t, "WMCO_ADOPTIONS", len(existing.Generations())))
	off, other := existingNode{name: "instance-off", address: "198.51.100.8"}, existingNode{name: "instance-other", address: "198.51.100.9"}
	w.existingFleet(append(slices.Clone(fleet), off, other)...)
	w.machines[off.name].PowerOff()
	stranger, _ := newKey(t)
	w.annotate(other.name, hosts.PinAnnotation, hosts.EncodeKey(stranger.PublicKey()))
	var names []string
	boots := map[string]int{}
	for _, n := range fleet {
		names = append(names, n.name)
		boots[n.name] = w.machines[n.name].boots(t)
	}
	t.Cleanup(func() { w.showNodes(names) })
	cost := w.watchPrice(names)
	w.create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config"},
		Data:       map[string]string{"config.yaml": "adoption: Rollout\nrollout: {settle: 1s, maxUnavailable: 3, maxParallel: 3}\n"},
	})
	adopted := func(n existingNode) bool { return w.adopted(n.name, n.address) }
	random := seed.New(t)
	for range number(t, "WMCO_ADOPTION_KILLS", 2) {
		s := w.settings()
		s.KilledAt = 1 + random.Int64N(stepsOfLife)
		w.process(s).killed(func() bool { return !slices.ContainsFunc(fleet, func(n existingNode) bool { return !adopted(n) }) })
		t.Logf("killed at step %d", s.KilledAt)
	}
	w.operate()
	for _, n := range fleet {
		eventually(t, n.name+" of "+n.generation+" to be adopted", func() bool { return adopted(n) })
	}
	cost.mu.Lock()
	defer cost.mu.Unlock()
	var notReady time.Duration
	drains := 0
	for _, n := range fleet {
		m := w.machines[n.name]
		if m.hasExistingAgent() || !strings.Contains(m.agentProgram(), "wmco-node") || m.boots(t) != boots[n.name] {
			t.Errorf("%s of %s: program %s, %d boots", n.name, n.generation, m.agentProgram(), m.boots(t)-boots[n.name])
		}
		planned := w.hasLogged("reason="+node.EventAdoptionPlanned, "object.name="+n.name+" ", "impact drain") // an Event is lost with the operator that is killed
		if n.drained && !planned || cost.cordoned[n.name] && !planned {
			t.Errorf("%s of %s: cordoned %t, and its plan needs a drain: %t", n.name, n.generation, cost.cordoned[n.name], planned)
		}
		if cost.cordoned[n.name] {
			drains++
		}
		notReady += cost.notReady[n.name]
	}
	t.Logf("%d nodes adopted: %.1f node-minutes not Ready, %d drains, 0 boots", len(fleet), notReady.Minutes(), drains)
	for _, n := range []existingNode{off, other} {
		if !w.machines[n.name].hasAgentCommand(n.furnishing(t).Command(bundle.AgentService)) || w.recordOf(n.address).Adopting {
			t.Errorf("%s was changed", n.name)
		}
	}
	w.awaitEvent("InstanceSetupFailure", configure.InstancesName, configure.ReasonHostKey, other.address)
}

// showNodes shows the Nodes of a test that has failed.
func (w *world) showNodes(names []string) {
	if !w.t.Failed() {
		return
	}
	for _, name := range names {
		var n corev1.Node
		if err := w.Get(context.Background(), client.ObjectKey{Name: name}, &n); err != nil {
			w.t.Error(err)
			continue
		}
		w.t.Logf("%s: unschedulable %t, Ready %t, version %s, report %s", name, n.Spec.Unschedulable, isReady(&n), n.Annotations[published.VersionAnnotation], n.Annotations[published.ReportAnnotation])
	}
}

// hasAgentCommand reports whether the service of the agent has a command, running or not.
func (m *joinedMachine) hasAgentCommand(command string) bool {
	var have string
	err := m.Edit(context.Background(), func(s *simulation.State) {
		for _, svc := range s.Services {
			if svc.Name == bundle.AgentService {
				have = svc.CommandLine
			}
		}
	})
	return err == nil && have == command
}
