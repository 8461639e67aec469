package fleettest

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/olm"
	"wmco/controller/windowsnode"
	"wmco/internal/test/observer"
)

// conditionName is that of the OperatorCondition for which controller/testdata has a Role.
const conditionName = "windows-machine-config-operator.v1"

// upgradeable is what OLM is told, each change of it once, and when each node had another bundle than before; both by resource versions, which all
// kinds share.
type upgradeable struct {
	mu     sync.Mutex
	told   []verdict
	before map[string]bundle.Digest
	since  map[string]uint64
}

type verdict struct {
	status string
	at     uint64
}

// see takes an event of the OperatorCondition or of a Node.
func (u *upgradeable) see(o client.Object) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch x := o.(type) {
	case *unstructured.Unstructured:
		conditions, _, _ := unstructured.NestedSlice(x.Object, "spec", "conditions")
		for _, c := range conditions {
			m, _ := c.(map[string]any)
			status, _ := m["status"].(string)
			if m["type"] == olm.ConditionUpgradeable && (len(u.told) == 0 || u.told[len(u.told)-1].status != status) {
				u.told = append(u.told, verdict{status, observer.Revision(x.GetResourceVersion())})
			}
		}
	case *corev1.Node:
		d, err := published.DecodeDesired(x.Annotations[published.DesiredAnnotation])
		if b, ok := u.before[x.Name]; ok && err == nil && d.Bundle != b && observer.IsCurrent(*x) && u.since[x.Name] == 0 {
			u.since[x.Name] = observer.Revision(x.ResourceVersion)
		}
	}
}

// all returns the verdicts so far.
func (u *upgradeable) all() []verdict {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.told)
}

// begin has changes counted from these bundles.
func (u *upgradeable) begin(before map[string]bundle.Digest) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.told, u.before, u.since = u.told[len(u.told)-1:], before, map[string]uint64{}
}

// watchUpgradeable makes the OperatorCondition, as OLM does, and follows it and the Nodes.
func (f *fleet) watchUpgradeable(t *testing.T) *upgradeable {
	t.Helper()
	server.Load(t, filepath.Join("..", "..", "..", "controller", "testdata", "operatorcondition.yaml"))
	o := object("operators.coreos.com/v2", "OperatorCondition", gather.OperatorNamespace, conditionName)
	eventually(t, "the kind", func() bool { return f.Create(t.Context(), o.DeepCopy()) == nil })
	f.created = append(f.created, o)
	watcher, err := client.NewWithWatch(f.plane.Config, client.Options{})
	must(t, err)
	conditions := &unstructured.UnstructuredList{}
	conditions.SetGroupVersionKind(o.GroupVersionKind())
	u := &upgradeable{}
	for _, list := range []client.ObjectList{conditions, &corev1.NodeList{}} {
		w, err := watcher.Watch(context.Background(), list)
		must(t, err)
		var all sync.WaitGroup
		all.Go(func() {
			for e := range w.ResultChan() {
				if o, ok := e.Object.(client.Object); ok {
					u.see(o)
				}
			}
		})
		t.Cleanup(func() { w.Stop(); all.Wait() })
	}
	return u
}

// TestOLMDoesNotReplaceTheOperatorBetweenCanaryAndRest: from the canary to the last node OLM is told, without a gap, that an upgrade is not safe; also while
// the canary has proved well and no other node has begun.
func TestOLMDoesNotReplaceTheOperatorBetweenCanaryAndRest(t *testing.T) {
	f := newMemoryFleet(t, 3)
	u := f.watchUpgradeable(t)
	f.environment = map[string]string{olm.ConditionVariable: conditionName}
	f.live(t, 0, 0)
	eventually(t, "nodes that follow the cluster", func() bool {
		return !slices.ContainsFunc(f.nodes(t), func(n corev1.Node) bool { return !observer.IsCurrent(n) })
	})
	f.rest(t)
	isUpgradeable := func(status string) func() bool {
		return func() bool { all := u.all(); return len(all) > 0 && all[len(all)-1].status == status }
	}
	eventually(t, "that an upgrade is safe", isUpgradeable("True"))
	r := f.read(t)
	u.begin(r.bundles)

	f.settings(t, `{rollout: {settle: 5s, maxParallel: 1}, kubelet: {maxPods: 100}}`)
	var canary string
	eventually(t, "a canary", func() bool {
		for name, b := range f.bundles(t) {
			if b != r.bundles[name] {
				canary = name
			}
		}
		return canary != ""
	})
	// The others cannot begin: their agents stand still.
	others := slices.DeleteFunc(slices.Clone(f.machines), func(m *machine) bool { return m.name == canary })
	for _, m := range others {
		must(t, m.StopService(t.Context(), bundle.AgentService))
	}
	eventually(t, "a canary that has proved well, and another node that is told", func() bool {
		state, err := windowsnode.DecodeRolloutState(f.node(t, canary).Annotations[published.RolloutAnnotation])
		now := f.bundles(t)
		return err == nil && !state.Turn.Confirmed.IsZero() && slices.ContainsFunc(others, func(m *machine) bool { return now[m.name] != r.bundles[m.name] })
	})
	time.Sleep(5 * time.Second) // OLM is told two seconds after a Node has changed
	if told := u.all()[1:]; len(told) != 1 || told[0].status != "False" {
		t.Errorf("between the canary and the others OLM is told %+v", told)
	}
	for _, m := range others {
		must(t, m.StartService(t.Context(), bundle.AgentService))
	}
	f.followed(t, r)
	eventually(t, "that an upgrade is safe again", isUpgradeable("True"))
	told := u.all()[1:]
	if len(told) != 2 || told[0].status != "False" || told[1].status != "True" {
		t.Fatalf("OLM was told %+v", told)
	}
	for _, m := range f.machines {
		if since := u.since[m.name]; since == 0 || since > told[1].at {
			t.Errorf("OLM was told at %d that an upgrade is safe, and %s had its bundle at %d", told[1].at, m.name, since)
		}
	}
}
