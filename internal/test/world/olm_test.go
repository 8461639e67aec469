package world

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/olm"
	"wmco/controller/windowsnode"
	"wmco/internal/test/observer"
	"wmco/internal/test/testenv/manifests"
	"wmco/internal/test/world/api"
)

// conditionName is that of the OperatorCondition for which controller/testdata has a Role.
const conditionName = "windows-machine-config-operator.v1"

// operatorCondition is the kind by which OLM is told whether the operator may be replaced.
func operatorCondition() api.Kind {
	return api.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v2", Kind: "OperatorCondition"},
		Resource:         "operatorconditions", Namespaced: true, Status: true, Generation: true, Custom: true,
	}
}

func conditionObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(operatorCondition().GroupVersionKind)
	u.SetNamespace(gather.OperatorNamespace)
	u.SetName(conditionName)
	return u
}

// installOLM makes what OLM gives an operator.
func (w *world) installOLM(t testing.TB) {
	t.Helper()
	list, err := manifests.Read(filepath.Join(root, "controller", "testdata", "operatorcondition.yaml"))
	must(t, err)
	for _, m := range list {
		if m.GetKind() != "CustomResourceDefinition" {
			must(t, m.Create(w.ctx, w))
		}
	}
	must(t, w.Create(w.ctx, conditionObject()))
}

// upgradeable is what OLM is told.
func (w *world) upgradeable(t testing.TB) string {
	t.Helper()
	u := conditionObject()
	must(t, w.Get(w.ctx, client.ObjectKeyFromObject(u), u))
	conditions, _, _ := unstructured.NestedSlice(u.Object, "spec", "conditions")
	for _, c := range conditions {
		if m, _ := c.(map[string]any); m["type"] == olm.ConditionUpgradeable {
			status, _ := m["status"].(string)
			return status
		}
	}
	return ""
}

// TestOLMDoesNotReplaceTheOperatorBetweenCanaryAndRest: from the canary to the last node OLM is told, without a gap, that an
// upgrade is not safe; also while the canary has proved well and no other node has begun.
func TestOLMDoesNotReplaceTheOperatorBetweenCanaryAndRest(t *testing.T) {
	inWorld(t, options{nodes: 3, seed: 1, patience: time.Hour, collection: time.Hour}, func(t *testing.T, w *world) {
		pause(w.ctx, time.Minute)
		if got := w.upgradeable(t); got != "True" {
			t.Fatalf("at rest OLM is told %q", got)
		}
		var told []string
		// until waits, and notes each change of what OLM is told.
		until := func(done func(nodes map[string]corev1.Node) bool) {
			t.Helper()
			for end := time.Now().Add(time.Hour); ; pause(w.ctx, time.Second) {
				if now := w.upgradeable(t); len(told) == 0 || told[len(told)-1] != now {
					told = append(told, now)
				}
				if done(w.observer.Snapshot()) {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("OLM was told %q, and nothing more comes: %s", told, w.observer)
				}
			}
		}
		bundleOf := func(n corev1.Node) string {
			d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
			must(t, err)
			return string(d.Bundle)
		}
		before := w.observer.Snapshot()
		w.settings.maxParallel, w.settings.settle, w.settings.maxPods = 1, 5*time.Minute, 100
		w.write(t)
		var canary string
		until(func(nodes map[string]corev1.Node) bool {
			for name, n := range nodes {
				if bundleOf(n) != bundleOf(before[name]) {
					canary = name
				}
			}
			return canary != ""
		})
		// The others cannot begin: their agents stand still.
		others := w.named(func(m *machine) bool { return m.name != canary })
		for _, m := range others {
			m.stop()
		}
		until(func(nodes map[string]corev1.Node) bool {
			state, err := windowsnode.DecodeRolloutState(nodes[canary].Annotations[published.RolloutAnnotation])
			return err == nil && !state.Turn.Confirmed.IsZero() &&
				slices.ContainsFunc(others, func(m *machine) bool { return bundleOf(nodes[m.name]) != bundleOf(before[m.name]) })
		})
		for _, m := range others {
			w.start(t, m)
		}
		until(func(nodes map[string]corev1.Node) bool {
			for name, n := range nodes {
				if bundleOf(n) == bundleOf(before[name]) || !observer.IsCurrent(n) {
					return false
				}
			}
			return true
		})
		last := len(told)
		until(func(map[string]corev1.Node) bool { return told[len(told)-1] == "True" })
		if want := []string{"True", "False", "True"}; !slices.Equal(told, want) || last != 2 { //nolint:mnd // before all nodes had it
			t.Errorf("OLM was told %q, and %q before all nodes had the change", told, told[:last])
		}
	})
}
