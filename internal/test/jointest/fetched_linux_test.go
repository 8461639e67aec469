package jointest_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/agent/executables"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/controller/node"
	"wmco/internal/test/registrytest"
	"wmco/payload"
	"wmco/render"
)

// configure makes the settings of the operator.
func (w *world) configure(text string) {
	w.t.Helper()
	w.create(settingsOf(text))
}

func settingsOf(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: "windows-machine-config"}, Data: map[string]string{"config.yaml": text}}
}

// trustAny has a registry need no valid certificate.
func (w *world) trustAny(registry string) {
	w.t.Helper()
	image := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "Image", "metadata": map[string]any{"name": "cluster"},
		"spec": map[string]any{"registrySources": map[string]any{"insecureRegistries": []any{registry}}},
	}}
	must(w.t, client.IgnoreNotFound(w.Delete(w.t.Context(), image.DeepCopy())))
	w.create(image)
}

// fetchFrom has the operator run the image of a registry, from which alone nodes get executables. It returns the environment of the operator.
func (w *world) fetchFrom(s *registrytest.Server) map[string]string {
	w.t.Helper()
	w.configure(executablesFrom(render.ExecutablesFromRegistry))
	return w.runImage("operator-0", s)
}

// runImage makes a Pod of the operator with the image of a registry, and returns the environment of the operator.
func (w *world) runImage(name string, s *registrytest.Server) map[string]string {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "operator"}}}}
	w.create(pod)
	before := client.MergeFrom(pod.DeepCopy())
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", Image: "operator", ImageID: s.Image}}
	must(w.t, w.Status().Patch(w.t.Context(), pod, before))
	return map[string]string{"POD_NAME": pod.Name}
}

func executablesFrom(from render.ExecutablesFrom) string {
	return fmt.Sprintf("executables: {from: %s}\nrollout: {settle: 0s}\n", from)
}

// TestANewOperatorsExecutablesAreFetched: nodes get the executables of a new operator from the image of its Pod, and those of the earlier one again, and need no
// login for it: their SSH servers are not reached.
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
	environment := w.fetchFrom(registry)
	w.trustAny(registry.HostPort())
	for _, address := range []string{"192.0.2.66", "192.0.2.67"} {
		must(t, w.at.put(address, nowhere))
	}
	options, err := next.options(w.output())
	must(t, err)
	options.Environment = environment
	stop = w.operateWith(options)
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
	w.renewsServing(machines["instance-y"])
	if n := registry.CountLayers(); n != 4 {
		t.Errorf("%d layers were sent; two executables of two nodes are other ones", n)
	}
	stop()
	registry.Close()
	earlier := registrytest.New(t, w.settings().Payload)
	w.trustAny(earlier.HostPort())
	options, err = w.settings().options(w.output())
	must(t, err)
	options.Environment = w.runImage("operator-1", earlier)
	w.operateWith(options)
	for name, m := range machines {
		eventually(t, "the earlier version of "+name, func() bool { return w.isOf(name, "test") })
		if m.Text(`C:\k\csi-proxy.exe`) == text {
			t.Errorf("%s has the newer executable", name)
		}
	}
}

// renewsServing has the kubelet of a host ask for another serving certificate, which needs no login.
func (w *world) renewsServing(m *joinedMachine) {
	w.t.Helper()
	const current = `C:\var\lib\kubelet\pki\kubelet-server-current.pem`
	m.PowerOff()
	before := m.Text(current)
	must(w.t, m.Remove(w.t.Context(), current))
	must(w.t, m.PowerOn())
	eventually(w.t, "another serving certificate of "+m.Name(), func() bool {
		now := m.Text(current)
		return now != "" && now != before
	})
}

// trustRegistry has the cluster trust a registry, as additionalTrustedCA of Image/cluster does through the Machine Config Operator.
func (w *world) trustRegistry(s *registrytest.Server) {
	w.t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"imageRegistryBundleUserData": []any{map[string]any{"file": strings.Replace(s.HostPort(), ":", "..", 1), "data": ca}}}})
	must(w.t, err)
	config := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "ControllerConfig", "metadata": map[string]any{"name": "machine-config-controller"}}}
	must(w.t, w.Patch(w.t.Context(), config, client.RawPatch(types.MergePatchType, patch)))
}

// TestHostsJoinWithWhatTheyFetch: a new host gets the executables from the operator's image although it has neither the CAs of the cluster nor a node agent; a
// registry that has them no longer keeps no host from joining, where they may be copied.
func TestHostsJoinWithWhatTheyFetch(t *testing.T) {
	w := newWorld(t)
	registry := registrytest.New(t, w.settings().Payload)
	w.machine("instance-v", "192.0.2.68")
	w.instances("192.0.2.68")
	w.trustRegistry(registry)
	options, err := w.settings().options(w.output())
	must(t, err)
	options.Environment = w.fetchFrom(registry)
	stop := w.operateWith(options)
	eventually(t, "node instance-v", func() bool { return w.joined("instance-v") })
	fetched := registry.CountLayers()
	if fetched == 0 {
		t.Error("no layer was sent")
	}
	registry.Close()
	w.machine("instance-w", "192.0.2.69")
	w.instances("192.0.2.68", "192.0.2.69")
	eventually(t, "an Event about the host that cannot fetch", func() bool {
		notes := w.events("InstanceSetupFailure", "windows-instances")
		return len(notes) == 1 && strings.Contains(notes[0], "ExecutablesNotFetched: 192.0.2.69") && strings.Contains(notes[0], registry.HostPort())
	})
	must(t, w.Update(t.Context(), settingsOf(executablesFrom(render.ExecutablesFromAny))))
	stop() // the next one need not wait for a pause
	next, err := w.settings().options(w.output())
	must(t, err)
	next.Environment = options.Environment
	w.operateWith(next)
	eventually(t, "node instance-w", func() bool { return w.joined("instance-w") })
	notes := w.events(published.ReasonNotFetched, "windows-instances")
	if len(notes) != 1 || !strings.Contains(notes[0], registry.HostPort()) || registry.CountLayers() != fetched {
		t.Errorf("%q", notes)
	}
}
