package jointest_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// node returns a Node that there must be. Within eventually, one that is not there ends the look.
func (w *world) node(name string) *corev1.Node {
	w.t.Helper()
	n := w.findNode(name)
	if n == nil && looks.Load() > 0 {
		panic(notYet{})
	}
	if n == nil {
		w.t.Fatalf("there is no Node %s", name)
	}
	return n
}

// hasNode reports whether there is a Node.
func (w *world) hasNode(name string) bool {
	w.t.Helper()
	return w.findNode(name) != nil
}

// findNode returns a Node, nil if there is none.
func (w *world) findNode(name string) *corev1.Node {
	w.t.Helper()
	var n corev1.Node
	err := w.Get(w.t.Context(), client.ObjectKey{Name: name}, &n)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return &n
}

// joined reports whether a node is complete and accepts pods.
func (w *world) joined(name string) bool { return isJoined(w.findNode(name)) }

func isJoined(n *corev1.Node) bool {
	return n != nil && n.Annotations["windowsmachineconfig.openshift.io/version"] == "test" && !n.Spec.Unschedulable && isReady(n)
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// setLost writes that the cluster has lost a kubelet, which does not report any longer.
func (w *world) setLost(name string) {
	w.t.Helper()
	patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"Unknown","reason":"NodeStatusUnknown"}]}}`)
	must(w.t, w.Status().Patch(w.t.Context(), w.node(name), client.RawPatch(types.StrategicMergePatchType, patch)))
}
