package main

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle/published"
	"wmco/internal/test/testenv"
)

var server testenv.Environment

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCommandLine(t *testing.T) {
	folder := t.TempDir()
	got, err := parseScene([]string{folder, "--bare", "--load", "a", "--load", "b.yaml", "--locked", "win-2", "win-1=192.0.2.11", "win-2=192.0.2.12"})
	must(t, err)
	want := scene{folder: folder, bare: true, load: []string{"a", "b.yaml"}, machines: []machine{{"win-1", netip.MustParseAddr("192.0.2.11"), false}, {"win-2", netip.MustParseAddr("192.0.2.12"), true}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(scene{}, machine{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, args := range [][]string{
		{}, {"down"}, {"apply"}, {"nodes", "x"}, {"events"}, {"up"}, {"up", folder}, {"up", folder, "win-1"}, {"up", folder, "=192.0.2.1"}, {"up", folder, "win-1=fd00::1"},
		{"up", folder, "--unheard", "win-1=192.0.2.11"}, {"up", folder, "--locked", "win-3", "win-1=192.0.2.11"},
	} {
		if err := run(t.Context(), args); !errors.Is(err, errUsage) || statusOf(err) != statusUsage {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// TestClient: apply, nodes and events against an API server.
func TestClient(t *testing.T) {
	admin := server.Client(t)
	t.Setenv("KUBECONFIG", server.ControlPlane(t).Kubeconfig)
	mirrors := filepath.Join("..", "..", "..", "..", "..", "golden", "transitions", "mirror-added", "idms.yaml")
	var out bytes.Buffer
	for range 2 { // as often as one likes
		must(t, applyFiles(t.Context(), &out, []string{mirrors}))
	}
	c, err := client.New(server.Config(t), client.Options{Scheme: scheme.Scheme})
	must(t, err)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "win-1", Annotations: map[string]string{published.VersionAnnotation: "v1.2.3"}}, Spec: corev1.NodeSpec{Unschedulable: true}}
	must(t, c.Create(t.Context(), node))
	node.Status = corev1.NodeStatus{
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "win-1"}, {Type: corev1.NodeInternalIP, Address: "192.0.2.11"}},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}, NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3"},
	}
	must(t, c.Status().Update(t.Context(), node))
	for i, about := range []string{"windows-instances", "windows-instances", "another"} {
		must(t, c.Create(t.Context(), &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Namespace: "default"}, EventTime: metav1.NewMicroTime(time.Unix(int64(1000-i), 0)), ReportingController: "test",
			ReportingInstance: "test", Action: "Join", Reason: "Setup", Type: corev1.EventTypeNormal, Note: []string{"second", "first", "else"}[i],
			Regarding: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "default", Name: about},
		}))
	}
	must(t, printNodes(t.Context(), &out))
	must(t, printEvents(t.Context(), &out, "configmap/windows-instances"))
	want := `imagedigestmirrorset/quay applied
imagedigestmirrorset/quay applied
NAME    STATUS                     ADDRESS      KUBELET   JOINED BY
win-1   Ready,SchedulingDisabled   192.0.2.11   v1.36.3   v1.2.3
Normal  Setup  first
Normal  Setup  second
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	must(t, admin.Delete(t.Context(), node))
}
