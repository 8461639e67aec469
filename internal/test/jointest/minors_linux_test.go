package jointest_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"wmco/bundle/reason"
	"wmco/controller/configure/checks"
	"wmco/controller/status"
	"wmco/payload"
)

// minorOfServer returns the minor version of Kubernetes of the test control plane, such as "1.31", and a version of a cluster that has it.
func minorOfServer(t *testing.T) (minor, cluster string) {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(server.Config(t))
	must(t, err)
	n, err := servedMinor(d)
	must(t, err)
	minor = fmt.Sprintf("1.%d", n)
	r, ok := payload.ReleaseOf(minor)
	if !ok {
		t.Fatalf("the API server has %s, which the payload has no kubelet for", minor)
	}
	return minor, r.Clusters()[0] + ".9"
}

// TestNodesOfThisControlPlane is the life of two nodes in a cluster of the minor version that the control plane has: make tests this with an
// old one too (bin/testenv-1.31). They join with its kubelet, get a mirror, and one is removed. A newer kubelet is refused, with a condition.
func TestNodesOfThisControlPlane(t *testing.T) {
	w := newWorld(t)
	minor, cluster := minorOfServer(t)
	w.history(cluster)
	w.pool(false, cluster)
	a, b := w.machine("instance-m", "192.0.2.91"), w.machine("instance-n", "192.0.2.92")
	w.instances("192.0.2.91", "192.0.2.92")
	w.operate()
	kubelet := payload.For(payload.Kubelet, minor)
	for name, m := range map[string]*joinedMachine{"instance-m": a, "instance-n": b} {
		eventually(t, "node "+name, func() bool { return w.joined(name) })
		if n := w.node(name); !strings.Contains(m.Text(`C:\k\kubelet.exe`), kubelet.Name) || n.Status.NodeInfo.KubeletVersion != kubelet.Version {
			t.Errorf("%s has kubelet %s, want %s", name, n.Status.NodeInfo.KubeletVersion, kubelet.Version)
		}
	}
	if c := w.condition(string(checks.VersionSupported)); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	hasMirror := func(m *joinedMachine, mirror string) bool {
		return strings.Contains(m.Text(`C:\k\containerd\registries\`+mirror+`.example.com\hosts.toml`), "mirror.example.com:5000")
	}
	w.create(mirrorSet("minor"))
	eventually(t, "a mirror on both hosts", func() bool { return hasMirror(a, "minor") && hasMirror(b, "minor") })

	if newer, ok := clusterAfter(minor); ok {
		w.history(newer, cluster)
		eventually(t, "a condition that the kubelet is too new", func() bool {
			c := w.condition(status.InputsAccepted)
			return c.Status == metav1.ConditionFalse && c.Reason == reason.KubeletTooNew && strings.Contains(c.Message, "is newer than one of its API servers") && strings.Contains(c.Message, "fix: ")
		})
		if !w.joined("instance-m") {
			t.Error("a node is drained for it")
		}
		w.history(cluster)
	}
	w.create(mirrorSet("again"))
	eventually(t, "another mirror on both hosts", func() bool { return hasMirror(a, "again") && hasMirror(b, "again") })
	for _, name := range []string{"instance-m", "instance-n"} {
		if got := w.node(name).Status.NodeInfo.KubeletVersion; got != kubelet.Version {
			t.Errorf("%s has kubelet %s", name, got)
		}
	}
	w.removeEntry("192.0.2.92")
	eventually(t, "the end of a node", func() bool { return !w.hasNode("instance-n") })
}

// clusterAfter returns a version of a cluster whose Kubernetes is the next minor version.
func clusterAfter(minor string) (string, bool) {
	own, _ := payload.MinorNumber(minor)
	r, ok := payload.ReleaseOf(fmt.Sprintf("1.%d", own+1))
	if !ok {
		return "", false
	}
	return r.Clusters()[0] + ".1", true
}
