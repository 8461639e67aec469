package jointest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/payload"
)

// history is that of the cluster: versions, the newest first. One that begins with "to " is an update that has not ended.
func (w *world) history(versions ...string) {
	w.t.Helper()
	set := func(ctx context.Context, versions []string) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(configv1.GroupVersion.WithKind("ClusterVersion"))
		if err := w.Get(ctx, client.ObjectKey{Name: "version"}, u); err != nil {
			return err
		}
		var list []any
		for _, v := range versions {
			entry := map[string]any{"state": "Completed", "version": v, "image": "example.com/release", "startedTime": "2026-07-14T09:02:11Z", "completionTime": "2026-07-14T10:19:33Z", "verified": true}
			if to, updating := strings.CutPrefix(v, "to "); updating {
				entry["state"], entry["version"], entry["completionTime"] = "Partial", to, nil
			}
			list = append(list, entry)
		}
		if err := unstructured.SetNestedSlice(u.Object, list, "status", "history"); err != nil {
			return err
		}
		if err := unstructured.SetNestedField(u.Object, strings.TrimPrefix(versions[0], "to "), "status", "desired", "version"); err != nil {
			return err
		}
		return w.Status().Update(ctx, u)
	}
	must(w.t, set(w.t.Context(), versions))
	w.t.Cleanup(func() { must(w.t, set(context.Background(), []string{"5.0.3"})) })
}

// pool changes the worker pool and what its current configuration was rendered for.
func (w *world) pool(paused bool, release string) {
	w.t.Helper()
	set := func(ctx context.Context, paused bool, release string) error {
		var pool mcfgv1.MachineConfigPool
		if err := w.Get(ctx, client.ObjectKey{Name: "worker"}, &pool); err != nil {
			return err
		}
		pool.Spec.Paused = paused
		if err := w.Update(ctx, &pool); err != nil {
			return err
		}
		config := &unstructured.Unstructured{}
		config.SetGroupVersionKind(mcfgv1.GroupVersion.WithKind("MachineConfig"))
		config.SetName(pool.Status.Configuration.Name)
		patch := `{"metadata":{"annotations":{"machineconfiguration.openshift.io/release-image-version":"` + release + `"}}}`
		return w.Patch(ctx, config, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	must(w.t, set(w.t.Context(), paused, release))
	w.t.Cleanup(func() { must(w.t, set(context.Background(), false, "5.0.3")) })
}

// TestAClusterUpdateExchangesKubelets: nodes of a 4.22 cluster get its kubelet. An update that has begun, and a paused pool, change nothing but
// what the inputs change; then the executables come first, and the node is drained before it has the other kubelet.
func TestAClusterUpdateExchangesKubelets(t *testing.T) {
	w := newWorld(t)
	w.history("4.22.9")
	w.pool(false, "4.22.9")
	m := w.machine("instance-k", "192.0.2.81")
	w.instances("192.0.2.81")
	w.operate()
	eventually(t, "the node", func() bool { return w.joined("instance-k") })
	const program = `C:\k\kubelet.exe`
	old, newer := payload.For(payload.Kubelet, "1.35"), payload.For(payload.Kubelet, "1.36")
	has := func(e payload.Executable) bool {
		return strings.Contains(m.Text(program), e.Name) && w.node("instance-k").Status.NodeInfo.KubeletVersion == e.Version
	}
	eventually(t, "the kubelet of the cluster's version", func() bool { return has(old) })
	w.app("web", 2, "instance-k")
	eventually(t, "pods on the node", func() bool { return w.running("web", "instance-k") == 2 })

	unchanged := func(what, mirror string) {
		t.Helper()
		w.create(mirrorSet(mirror))
		eventually(t, "a mirror on the host, "+what, func() bool {
			return strings.Contains(m.Text(`C:\k\containerd\registries\`+mirror+`.example.com\hosts.toml`), "mirror.example.com:5000")
		})
		if n := w.node("instance-k"); !has(old) || n.Spec.Unschedulable {
			t.Errorf("%s: the kubelet is %s, cordoned: %t", what, n.Status.NodeInfo.KubeletVersion, n.Spec.Unschedulable)
		}
	}
	w.history("to 5.0.3", "4.22.9")
	unchanged("while the cluster is updated", "begun")
	w.pool(true, "4.22.9")
	w.history("5.0.3", "4.22.9")
	unchanged("while the pool is paused", "paused")

	drained := w.drained("instance-k", "web")
	begun := time.Now()
	w.pool(false, "4.22.9")
	eventually(t, "the kubelet of the new version", func() bool { return has(newer) })
	t.Logf("another kubelet after %s", time.Since(begun).Round(time.Second))
	drained()
	eventually(t, "the end of the turn, and pods again", func() bool {
		n := w.node("instance-k")
		return !n.Spec.Unschedulable && n.Annotations[published.CordonAnnotation] == "" && w.desiredOf("instance-k").MaxImpact == bundle.ImpactRestart && w.running("web", "instance-k") == 2
	})
	if len(w.events("PayloadCopied", "instance-k")) == 0 {
		t.Error("no Event about executables that were copied ahead")
	}
}
