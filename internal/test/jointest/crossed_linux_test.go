package jointest_test

import (
	"strings"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"wmco/bundle/published"
)

// TestARemovalThatIsTakenBackAfterAChangeOfTheInputs: the removal, the join and the rollout each leave the node to another one, unless the entry ends the
// removal at once.
func TestARemovalThatIsTakenBackAfterAChangeOfTheInputs(t *testing.T) {
	w := newWorld(t)
	const name, address = "instance-a", "192.0.2.61"
	m, other := w.machine(name, address), w.machine("instance-b", "192.0.2.62")
	w.instances(address, "192.0.2.62")
	w.operate()
	w.allJoin([]string{name, "instance-b"})
	w.app("guarded", 1, name)
	w.create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "guard"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}},
	})
	eventually(t, "the pod", func() bool { return w.running("guarded", name) == 1 })
	w.removeEntry(address)
	w.awaitEvent("InstanceRemovalWaiting", name, "blocked")
	had := w.desiredOf(name).Bundle
	w.create(mirrorSet("crossed"))
	hasMirror := func(m *joinedMachine) bool {
		return strings.Contains(m.Text(`C:\k\containerd\registries\crossed.example.com\hosts.toml`), "mirror.example.com:5000")
	}
	eventually(t, "the mirror on the other host", func() bool { return hasMirror(other) })
	if w.desiredOf(name).Bundle != had {
		t.Error("a node that is being removed gets another bundle")
	}
	w.addEntry(address)
	eventually(t, "the end of the cordon", func() bool { return w.joined(name) && !w.node(name).Spec.Unschedulable })
	eventually(t, "the mirror on the host", func() bool { return hasMirror(m) })
	if w.running("guarded", name) != 1 {
		t.Error("the pod was evicted")
	}
}

// TestANodeJoinsWhileItsOperatorIsExchanged for one with other executables: its agent reports already, and cannot get them alone.
func TestANodeJoinsWhileItsOperatorIsExchanged(t *testing.T) {
	w := newWorld(t)
	const name, address = "instance-images", "192.0.2.50"
	image := "registry.example.com/team/nanoserver@sha256:" + strings.Repeat("1f", 32)
	runtime := &machineImages{present: map[string]bool{}, pinned: map[string]bool{}, refused: map[string]bool{}, gate: make(chan struct{})}
	w.images = runtime
	w.create(&mcfgv1.PinnedImageSet{
		ObjectMeta: metav1.ObjectMeta{Name: "base", Labels: map[string]string{"machineconfiguration.openshift.io/role": "worker", "node.openshift.io/os_id": "Windows"}},
		Spec:       mcfgv1.PinnedImageSetSpec{PinnedImages: []mcfgv1.PinnedImageRef{{Name: mcfgv1.ImageDigestFormat(image)}}},
	})
	m := w.machine(name, address)
	w.instances(address)
	stop := w.operate()
	eventually(t, "a report of the node that waits for its image", func() bool { return w.hasNode(name) && w.reported(name).State == published.StateApplied })
	stop()
	const text = "csi-proxy of the next release"
	next := w.settings()
	next.Version, next.Payload = "next", newerPayload(t, map[string]string{"csi-proxy": text})
	w.operateAs(next)
	eventually(t, "the executable on the host", func() bool { return m.Text(`C:\k\csi-proxy.exe`) == text })
	if w.isOf(name, "next") || !w.node(name).Spec.Unschedulable {
		t.Error("the node has joined without its image")
	}
	close(runtime.gate)
	eventually(t, "node "+name, func() bool { return w.isOf(name, "next") && !w.node(name).Spec.Unschedulable })
}
