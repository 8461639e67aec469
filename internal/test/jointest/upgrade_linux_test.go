package jointest_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/fleet"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/node"
	rolloutplan "wmco/controller/rollout/plan"
	"wmco/internal/test/payloadtest"
	"wmco/internal/test/simnode"
	"wmco/payload"
	"wmco/payload/store"
)

// newerPayload returns a folder with the executables of golden/payload, and others for those that are named.
func newerPayload(t *testing.T, others map[string]string) string {
	t.Helper()
	contents := map[string][]byte{}
	for name, text := range others {
		contents[name] = []byte(text)
	}
	return payloadtest.WriteFolder(t, filepath.Join("..", "..", ".."), contents)
}

// TestANewOperatorBringsItsExecutables: the node runs on until they are on the host, and is of the new version when it has applied them. A host
// that cannot be reached over SSH keeps the executables that it has, and gets the changes that need no others.
func TestANewOperatorBringsItsExecutables(t *testing.T) {
	w := newWorld(t)
	m, away := w.machine("instance-u", "192.0.2.61"), w.machine("instance-v", "192.0.2.62")
	w.instances("192.0.2.61", "192.0.2.62")
	stop := w.operate()
	for _, name := range []string{"instance-u", "instance-v"} {
		eventually(t, "node "+name, func() bool { return w.joined(name) })
		if n := w.node(name); n.Annotations[published.VersionAnnotation] != "test" || n.Annotations[published.DesiredVersionAnnotation] != "test" {
			t.Errorf("%v", n.Annotations)
		}
	}
	stop()
	w.app("web", 2, "instance-u")
	eventually(t, "pods on the node", func() bool { return w.running("web", "instance-u") == 2 })
	old := m.agentProgram()
	const text = "csi-proxy of the next release"
	next := w.settings()
	next.Version, next.Payload = "next", newerPayload(t, map[string]string{"csi-proxy": text, payload.For(payload.Kubelet, payload.TestedKubernetes).Name: "kubelet of the next release", payload.Agent: "node agent of the next release"})
	executables, err := store.Open(next.Payload)
	must(t, err)
	drained := w.drained("instance-u", "web")
	before, kept, had := w.desiredOf("instance-v").Payload, away.Text(`C:\k\csi-proxy.exe`), w.desiredOf("instance-v").Bundle
	must(t, w.at.put("192.0.2.62", nowhere))
	w.operateAs(next)
	eventually(t, "the new version", func() bool { return w.isOf("instance-u", "next") })
	if d := w.desiredOf("instance-u"); d.Payload != executables.Set().For(payload.TestedKubernetes).Digest() {
		t.Errorf("the bundle is made with %s, the operator ships %s", d.Payload.Short(), executables.Set().For(payload.TestedKubernetes).Digest().Short())
	}
	for _, event := range []struct{ reason, node string }{{node.EventPayloadCopied, "instance-u"}, {node.EventPayloadNotCopied, "instance-v"}} {
		eventually(t, "event "+event.reason, func() bool { return len(w.events(event.reason, event.node)) > 0 })
	}
	if got := m.Text(`C:\k\csi-proxy.exe`); got != text {
		t.Errorf("the executable on the host is %q", got)
	}
	drained()
	eventually(t, "the end of the turn, and pods again", func() bool {
		n := w.node("instance-u")
		return !n.Spec.Unschedulable && n.Annotations[published.CordonAnnotation] == "" && w.desiredOf("instance-u").MaxImpact == bundle.ImpactRestart && w.running("web", "instance-u") == 2
	})
	if got := m.Text(`C:\k\kubelet.exe`); got != "kubelet of the next release" {
		t.Errorf("the kubelet is %q", got)
	}
	if got := m.Text(m.agentProgram()); got != "node agent of the next release" {
		t.Errorf("the agent is %q", got)
	}
	if guard := m.Status(bundle.GuardService); m.Text(old) != "" || guard != plan.ServiceAbsent {
		t.Errorf("the agent from before stays: program %q, guard %s", m.Text(old), guard)
	}

	if d := w.desiredOf("instance-v"); d.Bundle != had || d.Payload != before {
		t.Errorf("the new operator alone changes what is published for a host without its executables: %s, before %s", d.Bundle.Short(), had.Short())
	}
	w.create(mirrorSet("kept"))
	const hosts = `C:\k\containerd\registries\kept.example.com\hosts.toml`
	for _, to := range []*joinedMachine{m, away} {
		eventually(t, "a mirror on the host", func() bool { return strings.Contains(to.Text(hosts), "mirror.example.com:5000") })
	}
	n := w.node("instance-v")
	if d := w.desiredOf("instance-v"); d.Payload != before || w.isOf("instance-v", "next") || n.Labels[published.UpgradingLabel] != "" || n.Annotations[published.DesiredVersionAnnotation] != "next" {
		t.Errorf("a host without the executables is shown as one that has them: payload %s, %v, %v", d.Payload.Short(), n.Annotations, n.Labels)
	}
	if got := away.Text(`C:\k\csi-proxy.exe`); got != kept {
		t.Errorf("the executable on the host is %q", got)
	}
	eventually(t, "the status with what the node waits for", func() bool {
		f, _, err := fleet.Read(t.Context(), objects.NewClusterReader(w), gather.OperatorNamespace, time.Now())
		must(t, err)
		i := slices.IndexFunc(f.Rollout.Nodes, func(s rolloutplan.Status) bool { return s.Node == "instance-v" })
		return i >= 0 && f.Rollout.Nodes[i].Reason == rolloutplan.ReasonPayload && f.Rollout.Nodes[i].Phase == rolloutplan.PhaseWaiting
	})

	must(t, w.at.put("192.0.2.62", away.ssh.address()))
	w.wakeUntil("instance-v", "the new version of a host that is back", func() bool { return w.isOf("instance-v", "next") })
	if got := away.Text(`C:\k\csi-proxy.exe`); got != text || w.desiredOf("instance-v").Payload != executables.Set().For(payload.TestedKubernetes).Digest() {
		t.Errorf("the executable on the host is %q", got)
	}
}

// drained watches a node from now on. What it returns ends that, and checks that a drain was permitted, and never before the node was
// cordoned and the pods of the app were gone.
func (w *world) drained(name, app string) (check func()) {
	w.t.Helper()
	c, err := client.NewWithWatch(w.admin, client.Options{})
	must(w.t, err)
	events, err := c.Watch(w.t.Context(), &corev1.NodeList{}, client.MatchingFields{"metadata.name": name})
	must(w.t, err)
	permitted := 0
	stopping, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			if !ok {
				select {
				case <-stopping: // a watch that is stopped while it reads may say that its connection is closed
				default:
					w.t.Errorf("watching Node %s: %v", name, e.Object)
				}
				return
			}
			d, err := published.DecodeDesired(n.Annotations[published.DesiredAnnotation])
			if err != nil || d.MaxImpact != bundle.ImpactDrain {
				continue
			}
			permitted++
			if !n.Spec.Unschedulable || n.Annotations[published.CordonAnnotation] != published.CordonedForRollout {
				w.t.Errorf("a drain is permitted on a node that is not cordoned: %v", n.Annotations)
			}
			// The pods at the time of this write: all resources have the same store, so the same revisions.
			then := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: n.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}}
			var pods corev1.PodList
			if err := c.List(w.t.Context(), &pods, then, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{"app": app}, client.MatchingFields{"spec.nodeName": name}); err != nil || len(pods.Items) > 0 {
				w.t.Errorf("a drain is permitted while %d pods are on the node, %v", len(pods.Items), err)
			}
		}
	}()
	return func() {
		w.t.Helper()
		close(stopping)
		events.Stop()
		<-done
		if permitted == 0 {
			w.t.Error("no drain was permitted")
		}
	}
}

// TestANewAgentThatDoesNotWorkIsExchangedForTheOneBefore: its node has everything as before, reports it, and is retried only with other
// executables. What these bring it gets then.
func TestANewAgentThatDoesNotWorkIsExchangedForTheOneBefore(t *testing.T) {
	w := newWorld(t)
	w.guard = 15 * time.Second
	m := w.machine("instance-w", "192.0.2.63")
	w.instances("192.0.2.63")
	stop := w.operate()
	eventually(t, "the node", func() bool { return w.joined("instance-w") })
	stop()
	before, proxy := m.agentProgram(), m.Text(`C:\k\csi-proxy.exe`)
	broken := w.settings()
	broken.Version, broken.Payload = "broken", newerPayload(t, map[string]string{"csi-proxy": "csi-proxy beside a broken agent", payload.Agent: simnode.BrokenAgent})
	stop = w.operateAs(broken)
	report := func() published.Report {
		r, err := published.DecodeReport(w.node("instance-w").Annotations[published.ReportAnnotation])
		must(t, err)
		return r
	}
	eventually(t, "the report of the restored agent", func() bool { return report().State == published.StateRolledBack })
	if r := report(); r.Desired != w.desiredOf("instance-w").Bundle || !strings.Contains(r.Message, "did not confirm") {
		t.Errorf("%+v", r)
	}
	if got := m.agentProgram(); got != before {
		t.Errorf("the service runs %s, before %s", got, before)
	}
	if got := m.Text(`C:\k\csi-proxy.exe`); got != proxy {
		t.Errorf("csi-proxy is %q", got)
	}
	if w.isOf("instance-w", "broken") {
		t.Error("the node is of the version that was rolled back")
	}
	stop()

	next := w.settings()
	next.Version, next.Payload = "next", newerPayload(t, map[string]string{payload.Agent: "a node agent that works"})
	w.operateAs(next)
	eventually(t, "the next version", func() bool { return w.isOf("instance-w", "next") })
	if got := m.Text(m.agentProgram()); got != "a node agent that works" {
		t.Errorf("the agent is %q", got)
	}
	if got := m.Status(bundle.GuardService); got != plan.ServiceAbsent {
		t.Errorf("the guard is %s", got)
	}
}

// agentProgram is the path of the program that the agent's service runs.
func (m *joinedMachine) agentProgram() string {
	all, err := m.Services(context.Background(), []string{bundle.AgentService})
	if err != nil || len(all) != 1 {
		return fmt.Sprint(all, err)
	}
	return bundle.Program(all[0].CommandLine)
}

// desiredOf returns the published state of a node.
func (w *world) desiredOf(name string) published.Desired {
	w.t.Helper()
	d, err := published.DecodeDesired(w.node(name).Annotations[published.DesiredAnnotation])
	must(w.t, err)
	return d
}

// isOf reports whether a node is of a version, and moves to no other one.
func (w *world) isOf(name, version string) bool {
	n := w.node(name)
	return n.Annotations[published.VersionAnnotation] == version && n.Annotations[published.DesiredVersionAnnotation] == version && n.Labels[published.UpgradingLabel] == ""
}

func mirrorSet(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"imageDigestMirrors": []any{map[string]any{"source": name + ".example.com/app", "mirrors": []any{"mirror.example.com:5000/app"}}}},
	}}
}
