package steps

import (
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/layers"
	"wmco/controller/rollout/drains"
	"wmco/controller/rollout/plan"
	"wmco/controller/windowsnode"
	"wmco/controller/windowsnode/heartbeat"
)

// beside returns an executor of a cluster with these Machines and checks.
func beside(t *testing.T, objects ...client.Object) (*Executor, *events.FakeRecorder) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := machinev1beta1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	recorder := events.NewFakeRecorder(10)
	return &Executor{Notary: notary(t), Layers: &layers.Cache{Live: c, Namespace: namespace},
		Nodes: c, Live: c, Drains: &drains.Drains{}, Namespace: namespace, Events: recorder, Now: func() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) },
		Elapsed: heartbeat.MonotonicClock(clock.RealClock{}), Heartbeats: windowsnode.SilenceByKubelet,
	}, recorder
}

func machineOf(name string, change func(*machinev1beta1.Machine)) *machinev1beta1.Machine {
	m := &machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: name, Labels: map[string]string{"os": "windows"}}}
	change(m)
	return m
}

func deleted(m *machinev1beta1.Machine) {
	at := metav1.NewTime(time.Date(2026, 11, 22, 11, 0, 0, 0, time.UTC))
	m.DeletionTimestamp, m.Finalizers = &at, []string{"machine.machine.openshift.io"}
}

// TestNodesWhoseMachineIsDeleted are about to go: machine-api names the Node, or the Machine has its address.
func TestNodesWhoseMachineIsDeleted(t *testing.T) {
	address := func(a string) []corev1.NodeAddress {
		return []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: a}}
	}
	e, _ := beside(t,
		machineOf("named", func(m *machinev1beta1.Machine) {
			deleted(m)
			m.Status.NodeRef = &corev1.ObjectReference{Name: "win-named"}
		}),
		machineOf("addressed", func(m *machinev1beta1.Machine) { deleted(m); m.Status.Addresses = address("192.0.2.2") }),
		machineOf("stays", func(m *machinev1beta1.Machine) { m.Status.Addresses = address("192.0.2.3") }),
	)
	nodes := map[string]windowsnode.Node{}
	for name, a := range map[string]string{"win-named": "192.0.2.1", "win-addressed": "192.0.2.2", "win-stays": "192.0.2.3"} {
		nodes[name] = windowsnode.Decode(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: address(a)}})
	}
	v, err := e.observeFleet(t.Context(), nodes, Rendered{})
	if err != nil || len(v.Nodes) != 3 {
		t.Fatalf("%d nodes, %v", len(v.Nodes), err)
	}
	for _, n := range v.Nodes {
		if goes := n.Name != "win-stays"; (n.Leaving == "its Machine is being deleted") != goes {
			t.Errorf("%s: leaving %q", n.Name, n.Leaving)
		}
	}
}

// TestAHealthCheckThatDoesNotWaitForABoot is named on the Node before the boot, with what such a turn takes here.
func TestAHealthCheckThatDoesNotWaitForABoot(t *testing.T) {
	check := func(name string, timeout time.Duration) *machinev1beta1.MachineHealthCheck {
		return &machinev1beta1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-machine-api", Name: name}, Spec: machinev1beta1.MachineHealthCheckSpec{
			Selector:            metav1.LabelSelector{MatchLabels: map[string]string{"os": "windows"}},
			UnhealthyConditions: []machinev1beta1.UnhealthyCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Timeout: metav1.Duration{Duration: timeout}}},
		}}
	}
	e, recorder := beside(t, check("hasty", 3*time.Minute), check("patient", time.Hour),
		machineOf("win-1", func(m *machinev1beta1.Machine) { m.Status.NodeRef = &corev1.ObjectReference{Name: "win-1"} }))
	node := windowsnode.Decode(corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1"}})
	begun := e.Now().Add(-time.Hour)
	snapshot := func(past ...plan.Turn) snapshot {
		return snapshot{Fleet: plan.Fleet{Policy: plan.Policy{Timeout: 30 * time.Minute}, Now: e.Now(), Nodes: []plan.Node{{Name: "win-1", State: plan.State{Past: past}}}}}
	}
	if err := e.warnShortHealthCheck(t.Context(), snapshot(), node); err != nil || len(recorder.Events) > 0 {
		t.Errorf("no boot was measured: %d events, %v", len(recorder.Events), err)
	}
	boot := plan.Turn{Bundle: bundle.Of([]byte("before")), Impact: bundle.ImpactReboot, Begun: begun, Permitted: begun.Add(time.Minute), Ended: begun.Add(9 * time.Minute), Result: published.StateApplied}
	if err := e.warnShortHealthCheck(t.Context(), snapshot(boot), node); err != nil || len(recorder.Events) != 1 {
		t.Fatalf("%d events, %v", len(recorder.Events), err)
	}
	got := <-recorder.Events
	for _, text := range []string{"Warning " + EventHealthCheckShort, "hasty", "3m0s", "fix: raise the timeout"} {
		if !strings.Contains(got, text) {
			t.Errorf("%q lacks %q", got, text)
		}
	}
}
