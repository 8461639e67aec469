package docexamples

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/manifests"
)

const folder = "../../../docs/examples"

// notServed are the kinds that the control plane of the tests does not have: their definitions are in no module that it loads.
var notServed = []string{
	"MachineAutoscaler",     // of cluster-autoscaler-operator
	"ImageSetConfiguration", // a file of oc-mirror; no cluster serves it
	"ServiceMonitor",        // of prometheus-operator; deploy/kustomize has those of several versions
}

var server testenv.Environment

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// TestAClusterTakesTheExamples: no field is unknown, and nothing is refused. Nothing is created but the namespaces.
func TestAClusterTakesTheExamples(t *testing.T) {
	list, err := manifests.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	namespaces, others := manifests.Namespaces(list)
	c, err := manifests.NewClient(server.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range namespaces {
		if err := n.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	taken, missing := 0, map[string]bool{}
	for _, m := range others {
		if m.GetNamespace() == "" {
			m.SetNamespace(namespaceOf(t, c, m))
		}
		switch err := c.Create(t.Context(), m.DeepCopy(), client.DryRunAll); {
		case meta.IsNoMatchError(err):
			missing[m.GetKind()] = true
			if !slices.Contains(notServed, m.GetKind()) {
				t.Errorf("%s: the control plane does not serve it", m)
			}
		case err != nil:
			t.Errorf("%s: %v", m, err)
		default:
			taken++
		}
	}
	for _, kind := range notServed {
		if !missing[kind] {
			t.Errorf("no example of %s, or it is served now", kind)
		}
	}
	if taken < 12 {
		t.Errorf("%d objects", taken)
	}
}

// namespaceOf is the namespace that a user's kubeconfig would give; none for kinds without one.
func namespaceOf(t *testing.T, c client.Client, m manifests.Manifest) string {
	t.Helper()
	mapping, err := c.RESTMapper().RESTMapping(m.GroupVersionKind().GroupKind(), m.GroupVersionKind().Version)
	if meta.IsNoMatchError(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return ""
	}
	return "default"
}

// TestTheExamplesTolerateTheTaint: what runs on Windows nodes tolerates their taint, or names a RuntimeClass that does.
func TestTheExamplesTolerateTheTaint(t *testing.T) {
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	windows := 0
	for _, f := range files {
		text, err := os.ReadFile(folder + "/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "name: windows\n") || !strings.Contains(string(text), "containers:") {
			continue
		}
		windows++
		if !strings.Contains(string(text), "tolerations:") && !strings.Contains(string(text), "runtimeClassName:") {
			t.Errorf("%s tolerates nothing", f.Name())
		}
	}
	if windows < 3 {
		t.Errorf("%d workloads", windows)
	}
}

// TestThereIsARuntimeClassForEachRelease: it chooses nodes by the build that kubelets of this release write, and tolerates the taint of Windows nodes.
func TestThereIsARuntimeClassForEachRelease(t *testing.T) {
	list, err := manifests.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	tolerates := corev1.Toleration{Key: "os", Operator: corev1.TolerationOpEqual, Value: "Windows", Effect: corev1.TaintEffectNoSchedule}
	builds := map[string]string{}
	for _, m := range list {
		var class nodev1.RuntimeClass
		if m.GetKind() != "RuntimeClass" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m.Object, &class, true); err != nil {
			t.Fatal(err)
		}
		if class.Scheduling.NodeSelector[corev1.LabelOSStable] != "windows" || !slices.Contains(class.Scheduling.Tolerations, tolerates) {
			t.Errorf("%s does not choose Windows nodes", class.Name)
		}
		builds[class.Name] = class.Scheduling.NodeSelector[corev1.LabelWindowsBuild]
	}
	if diff := cmp.Diff(map[string]string{"windows2019": "10.0.17763", "windows2022": "10.0.20348", "windows2025": "10.0.26100"}, builds); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
