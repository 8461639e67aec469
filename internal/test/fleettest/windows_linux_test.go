package fleettest

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/controller/gather"
	"wmco/controller/status"
	"wmco/internal/test/observer"
)

// TestAChangeWaitsForItsWindow: a change that restarts services waits while no window is open, and the condition has the time of the next one. A
// change that restarts nothing does not wait. When a window opens, the nodes follow.
func TestAChangeWaitsForItsWindow(t *testing.T) {
	f := newMemoryFleet(t, 2)
	server.Load(t, filepath.Join("..", "..", "..", "deploy", "crd"))
	const closed = `rollout: {settle: 0s, windows: [{start: '0 3 29 2 *', duration: 1m, timeZone: Europe/Berlin}]}`
	f.settings(t, `{`+closed+`}`)
	f.live(t, 0, 0)
	current := func() bool {
		return !slices.ContainsFunc(f.nodes(t), func(n corev1.Node) bool { return !observer.IsCurrent(n) })
	}
	eventually(t, "nodes that follow the cluster", current)
	f.rest(t)

	r := f.read(t)
	f.put(t, `{apiVersion: config.openshift.io/v1, kind: ImageDigestMirrorSet, metadata: {name: window},
  spec: {imageDigestMirrors: [{source: window.example.com/app, mirrors: ["mirror.example.com:5000/app"]}]}}`)
	f.followed(t, r)
	f.rest(t)

	r = f.read(t)
	f.settings(t, `{`+closed+`, kubelet: {maxPods: 99}}`)
	rolloutText := func() string {
		o := object(status.Group+"/"+status.Version, status.Kind, gather.OperatorNamespace, status.Name)
		if err := f.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			if m, _ := c.(map[string]any); m["type"] == status.RolledOut {
				message, _ := m["message"].(string)
				return message
			}
		}
		return ""
	}
	eventually(t, "when the next window opens", func() bool {
		// 29 February at three in Berlin.
		return strings.Contains(rolloutText(), "waiting for a maintenance window (rollout.windows, impact restart); the next one opens at 20") && strings.Contains(rolloutText(), "-02-29T02:00:00Z")
	})
	f.rendered(t)
	if now := f.bundles(t); !maps.Equal(now, r.bundles) {
		t.Errorf("a node has begun while no window is open: %v, before %v", now, r.bundles)
	}
	f.settings(t, `{rollout: {settle: 0s, windows: [{start: '0 0 * * *', duration: 24h}]}, kubelet: {maxPods: 99}}`)
	f.followed(t, r)
	for _, m := range f.machines {
		if n := m.since(t, r.machines[m.name]).Starts["kubelet"]; n != 1 {
			t.Errorf("%s: the kubelet was started %d times", m.name, n)
		}
	}
}
