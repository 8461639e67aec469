package jointest_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/agent/executables"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/node"
	"wmco/internal/test/registrytest"
	"wmco/payload"
)

// fetchFrom has nodes fetch executables from a registry without a valid certificate alone, and returns the name of the operator's Pod, whose image is there.
func (w *world) fetchFrom(s *registrytest.Server) string {
	w.t.Helper()
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config"},
		Data: map[string]string{"config.yaml": "executables: {from: Registry}\nrollout: {settle: 0s}\n"}})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "operator-0"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "operator"}}}}
	w.create(pod)
	before := client.MergeFrom(pod.DeepCopy())
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", Image: "operator", ImageID: s.Image}}
	must(w.t, w.Status().Patch(w.t.Context(), pod, before))
	image := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{"registrySources": map[string]any{"insecureRegistries": []any{s.HostPort()}}},
	}}
	must(w.t, client.IgnoreNotFound(w.Delete(w.t.Context(), image.DeepCopy())))
	w.create(image)
	return pod.Name
}

// TestANewOperatorsExecutablesAreFetched: nodes get the executables of a new operator from the image of its Pod, and need no login for it: their SSH servers are
// not reached.
func TestANewOperatorsExecutablesAreFetched(t *testing.T) {
	w := newWorld(t)
	w.registry = func() executables.Registry { return registrytest.NewFetcher() }
	machines := map[string]*joinedMachine{"instance-y": w.machine("instance-y", "192.0.2.66"), "instance-z": w.machine("instance-z", "192.0.2.67")}
	w.instances("192.0.2.66", "192.0.2.67")
	stop := w.operate()
	for name := range machines {
		eventually(t, "node "+name, func() bool { return w.joined(name) })
	}
	stop()
	const text = "csi-proxy that is fetched"
	next := w.settings()
	next.Version, next.Payload = "next", newerPayload(t, map[string]string{"csi-proxy": text, payload.For(payload.Kubelet, payload.TestedKubernetes).Name: "kubelet that is fetched"})
	registry := registrytest.New(t, next.Payload)
	pod := w.fetchFrom(registry)
	for _, address := range []string{"192.0.2.66", "192.0.2.67"} {
		must(t, w.at.put(address, nowhere))
	}
	options, err := next.options(w.output())
	must(t, err)
	options.Environment = map[string]string{"POD_NAME": pod}
	w.operateWith(options)
	for name, m := range machines {
		eventually(t, "the new version of "+name, func() bool { return w.isOf(name, "next") })
		if got := m.Text(`C:\k\csi-proxy.exe`); got != text {
			t.Errorf("%s: the executable on the host is %q", name, got)
		}
		if events := w.events(node.EventPayloadCopied, name); len(events) != 1 || !strings.HasSuffix(events[0], "are on the host (fetched)") {
			t.Errorf("%s: %q", name, events)
		}
		eventually(t, "the end of the permission of "+name, func() bool { return w.node(name).Annotations[published.FetchAnnotation] == "" })
	}
	if n := registry.CountLayers(); n != 4 {
		t.Errorf("%d layers were sent; two executables of two nodes are other ones", n)
	}
}
