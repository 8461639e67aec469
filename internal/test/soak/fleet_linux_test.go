package soak

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/simulation"
	"wmco/internal/test/simnode/cluster"
	"wmco/internal/test/simnode/light"
)

const machineNamespace = "openshift-machine-api"

// machine is a light node with its Machine.
type machine struct {
	*light.Node
	name string
	// stop ends the node agent; nil while the host is off.
	stop func()
}

// addNodes makes new nodes, some at a time, and starts their agents.
func (s *soak) addNodes(t testing.TB, count int) {
	t.Helper()
	first := s.made
	s.made += count
	var next atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				if err := s.addNode(t, first+i); err != nil {
					t.Errorf("making a node: %v", err)
				}
			}
		})
	}
	all.Wait()
	s.try(t, "records of hosts", func() error { return cluster.RecordNodes(s.ctx, server.Config(t)) })
}

func (s *soak) addNode(t testing.TB, i int) error {
	n, facts := s.example.Node(i)
	name := n.Name
	if err := s.attempt(func() error { return cluster.AddJoined(s.ctx, s, n.DeepCopy()) }); err != nil {
		return err
	}
	boot := func(ctx context.Context) error { return s.boot(ctx, name) }
	l, err := light.New(s.ctx, light.Options{Facts: facts, Server: server.Node(t, name), Boot: boot})
	if err == nil {
		err = executables.put(s.ctx, l.Host)
	}
	if err != nil {
		return err
	}
	x := &machine{Node: l, name: name}
	s.mu.Lock()
	s.machines[name] = x
	s.mu.Unlock()
	s.start(t, x)
	return nil
}

// start starts the node agent.
func (s *soak) start(t testing.TB, m *machine) {
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := m.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("the agent of %s: %v", m.name, err)
		}
	}()
	m.stop = func() { cancel(); <-ended }
}

// bootTakes is how long hosts are away when they boot.
const bootTakes = 2 * time.Second

// boot is what the cluster sees of a boot.
func (s *soak) boot(ctx context.Context, name string) error {
	s.count(&s.boots)
	if err := s.setReady(name, corev1.ConditionUnknown); err != nil {
		return err
	}
	pause(ctx, bootTakes)
	return s.setReady(name, corev1.ConditionTrue)
}

// setReady sets a kubelet's condition Ready. A Node that was removed is no error.
func (s *soak) setReady(name string, ready corev1.ConditionStatus) error {
	return s.attempt(func() error {
		var n corev1.Node
		if err := s.Get(s.ctx, client.ObjectKey{Name: name}, &n); err != nil {
			return client.IgnoreNotFound(err)
		}
		before := n.DeepCopy()
		for i, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				n.Status.Conditions[i].Status, n.Status.Conditions[i].LastTransitionTime, n.Status.Conditions[i].LastHeartbeatTime = ready, metav1.Now(), metav1.Now()
			}
		}
		return client.IgnoreNotFound(s.Status().Patch(s.ctx, &n, client.StrategicMergeFrom(before)))
	})
}

// powerOff ends what runs on a host.
func (s *soak) powerOff(t testing.TB, m *machine) {
	t.Helper()
	m.stop()
	m.stop = nil
	must(t, s.setReady(m.name, corev1.ConditionUnknown))
}

// powerOn boots a host that is off.
func (s *soak) powerOn(t testing.TB, m *machine) {
	t.Helper()
	must(t, m.Restart(s.ctx))
	must(t, s.setReady(m.name, corev1.ConditionTrue))
	s.start(t, m)
}

// remove removes a machine as the cluster autoscaler does: a taint, the Machine, the host, the Node.
func (s *soak) remove(t testing.TB, m *machine) {
	t.Helper()
	s.edit(t, m.name, `{"spec":{"taints":[{"key":"os","value":"Windows","effect":"NoSchedule"},{"key":"ToBeDeletedByClusterAutoscaler","effect":"NoSchedule"}]}}`)
	s.try(t, "the end of a Machine", func() error {
		return client.IgnoreNotFound(s.Delete(s.ctx, &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machineNamespace, Name: m.name}}))
	})
	if m.stop != nil {
		m.stop()
	}
	delete(s.machines, m.name)
	s.try(t, "the end of a Node", func() error {
		return client.IgnoreNotFound(s.Delete(s.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}}))
	})
}

// named returns the machines for which this holds, by name.
func (s *soak) named(is func(*machine) bool) []*machine {
	var list []*machine
	for _, name := range slices.Sorted(maps.Keys(s.machines)) {
		if m := s.machines[name]; is(m) {
			list = append(list, m)
		}
	}
	return list
}

func isOn(m *machine) bool { return m.stop != nil }

// loseFeature takes a Windows feature from a host, which can only be added again with a boot. The agent looks at once.
func (s *soak) loseFeature(t testing.TB, m *machine) {
	t.Helper()
	m.stop()
	must(t, m.Host.Edit(s.ctx, func(x *simulation.State) { delete(x.Settings, simulation.SettingKey(bundle.KindFeature, "Containers")) }))
	s.start(t, m)
}

// drift changes a file by hand. The agent looks at once.
func (s *soak) drift(t testing.TB, m *machine) {
	t.Helper()
	m.stop()
	must(t, m.Host.WriteFile(s.ctx, `C:\k\kube-proxy.conf`, bundle.AccessAdmins, []byte("something else")))
	s.start(t, m)
}

// edit changes a Node, as oc patch does.
func (s *soak) edit(t testing.TB, node, patch string) {
	t.Helper()
	s.try(t, "a change of a Node", func() error {
		return s.Patch(s.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, mergePatch(patch))
	})
}

// heartbeats gives all node agents that run a sign of life, as if they had been alive while time passed for the operator.
func (s *soak) heartbeats(t testing.TB) {
	t.Helper()
	for _, m := range s.named(isOn) {
		s.try(t, "signs of life", func() error {
			var n corev1.Node
			if err := s.Get(s.ctx, client.ObjectKey{Name: m.name}, &n); err != nil {
				return err
			}
			before := n.DeepCopy()
			for i, c := range n.Status.Conditions {
				if c.Type == published.Condition || c.Type == corev1.NodeReady {
					n.Status.Conditions[i].LastHeartbeatTime = metav1.Now()
				}
			}
			return s.Status().Patch(s.ctx, &n, client.StrategicMergeFrom(before))
		})
	}
}
