package olmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/deploy/olm"
)

const (
	subscriptionName = "wmco"
	v1alpha1         = "operators.coreos.com/v1alpha1"
	automatic        = "Automatic"
	manual           = "Manual"
)

// world is what one test sees of the station.
type world struct {
	*station
	t *testing.T
	// before are the objects that the cluster has without the operator.
	before []string
}

// newWorld returns a cluster with OLM, without an operator.
func newWorld(t *testing.T) *world {
	t.Helper()
	program(t, "olm")
	the.once.Do(func() { the.start(t) })
	if the.bundles == nil {
		t.Skip("OLM does not run")
	}
	w := &world{station: &the, t: t}
	for _, name := range []string{catalogExisting, catalogFirst, catalogSecond} {
		w.await("catalog "+name, func() bool {
			return w.text("CatalogSource", olmNamespace, name, "status", "connectionState", "lastObservedState") == "READY"
		})
	}
	common := filepath.Join("..", "..", "..", "golden", "clusters", "common")
	var paths []string
	for _, name := range []string{"apiserver", "clusterversion", "image", "machineconfigpools", "network-config", "network-operator", "proxy", "secret-node-bootstrapper-token", "secret-pull-secret"} {
		paths = append(paths, filepath.Join(common, name+".yaml"))
	}
	for _, name := range []string{"infrastructure", "controllerconfig", "machineconfigs"} {
		paths = append(paths, filepath.Join(common, "..", "none", name+".yaml"))
	}
	server.Load(t, paths...)
	w.before = w.objects()
	t.Cleanup(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, err := range w.errors {
			t.Error(err)
		}
		w.errors = nil
	})
	return w
}

func kindOf(name string) string {
	switch name {
	case "OperatorGroup":
		return "operators.coreos.com/v1"
	case "OperatorCondition":
		return "operators.coreos.com/v2"
	case "ServiceMonitor", "PrometheusRule":
		return "monitoring.coreos.com/v1"
	case "Deployment":
		return "apps/v1"
	case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		return rbac + "/v1"
	case "ServiceAccount", "Service", "Namespace", "Node", "ConfigMap", "Secret":
		return "v1"
	}
	return v1alpha1
}

// get returns an object; nil if there is none.
func (w *world) get(kind, namespace, name string) *unstructured.Unstructured {
	w.t.Helper()
	o := newObject(kindOf(kind), kind, namespace, name)
	err := w.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(w.t, err)
	return o
}

// text returns a field of an object; empty if there is none.
func (w *world) text(kind, namespace, name string, fields ...string) string {
	w.t.Helper()
	o := w.get(kind, namespace, name)
	if o == nil {
		return ""
	}
	text, _, _ := unstructured.NestedString(o.Object, fields...)
	return text
}

func (w *world) list(kind, namespace string) []unstructured.Unstructured {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(kindOf(kind))
	list.SetKind(kind + "List")
	must(w.t, w.List(context.Background(), list, client.InNamespace(namespace)))
	return list.Items
}

// subscription is what a user asks for.
type subscription struct {
	namespace, source, channel, starting string
	// approval is automatic if it is empty. targets are the namespaces of the OperatorGroup, its own if they are nil.
	approval string
	targets  []string
}

// subscribe makes the namespace, its OperatorGroup and the Subscription.
func (w *world) subscribe(s subscription) {
	w.t.Helper()
	must(w.t, client.IgnoreAlreadyExists(w.Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})))
	group := newObject(kindOf("OperatorGroup"), "OperatorGroup", s.namespace, "wmco")
	if s.targets == nil {
		s.targets = []string{s.namespace}
	}
	group.Object["spec"] = object{}
	if len(s.targets) > 0 {
		group.Object["spec"] = object{"targetNamespaces": asAny(s.targets)}
	}
	must(w.t, w.Create(w.t.Context(), group))
	o := newObject(v1alpha1, "Subscription", s.namespace, subscriptionName)
	spec := object{"name": olm.Package, "channel": "stable", "source": s.source, "sourceNamespace": olmNamespace, "installPlanApproval": automatic}
	for name, value := range map[string]string{"channel": s.channel, "startingCSV": s.starting, "installPlanApproval": s.approval} {
		if value != "" {
			spec[name] = value
		}
	}
	o.Object["spec"] = spec
	must(w.t, w.Create(w.t.Context(), o))
}

func asAny(list []string) []any {
	var out []any
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

// patch merges JSON into an object.
func (w *world) patch(kind, namespace, name string, change object) {
	w.t.Helper()
	data, err := json.Marshal(change)
	must(w.t, err)
	must(w.t, w.Patch(w.t.Context(), newObject(kindOf(kind), kind, namespace, name), client.RawPatch("application/merge-patch+json", data)))
}

// follow gives the Subscription another catalog.
func (w *world) follow(namespace, source string) {
	w.t.Helper()
	w.patch("Subscription", namespace, subscriptionName, object{"spec": object{"source": source, "channel": "stable"}})
}

// phase returns the phase of a version, with its reason.
func (w *world) phase(namespace, version string) string {
	w.t.Helper()
	return w.text("ClusterServiceVersion", namespace, nameOf(version), "status", "phase") + "/" + w.text("ClusterServiceVersion", namespace, nameOf(version), "status", "reason")
}

// awaitInstalled also waits until OLM has seen the end of the InstallPlan: it would create the ClusterServiceVersion again if its plan went on
// after an upgrade to the next one, or after a removal. The status alone is not enough: until OLM's cache has it, the plan is run once more.
func (w *world) awaitInstalled(namespace, version string) {
	w.t.Helper()
	w.await(version+" is installed in "+namespace, func() bool {
		plan := w.plan(namespace, version, "Complete")
		return plan != "" && w.phase(namespace, version) == "Succeeded/InstallSucceeded" && w.hasSeenComplete(plan)
	})
}

// hasSeenComplete reports whether the catalog operator has looked at an InstallPlan that was complete.
func (w *world) hasSeenComplete(plan string) bool {
	w.t.Helper()
	log, err := os.ReadFile(filepath.Join(w.folder, "catalog-operator.log"))
	must(w.t, err)
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, " ip="+plan+" ") && strings.Contains(line, " phase=Complete") {
			return true
		}
	}
	return false
}

func (w *world) awaitGone(kind, namespace, name string) {
	w.t.Helper()
	w.await(kind+" "+name+" is gone", func() bool { return w.get(kind, namespace, name) == nil })
}

// plan returns the InstallPlan for a version that has a phase; empty if there is none.
func (w *world) plan(namespace, version, phase string) string {
	w.t.Helper()
	for _, p := range w.list("InstallPlan", namespace) {
		names, _, _ := unstructured.NestedStringSlice(p.Object, "spec", "clusterServiceVersionNames")
		if have, _, _ := unstructured.NestedString(p.Object, "status", "phase"); have == phase && slices.Contains(names, nameOf(version)) {
			return p.GetName()
		}
	}
	return ""
}

// approve waits for an InstallPlan for the version, and approves it.
func (w *world) approve(namespace, version string) {
	w.t.Helper()
	w.await("an InstallPlan for "+version+" that waits for approval", func() bool { return w.plan(namespace, version, "RequiresApproval") != "" })
	if w.get("ClusterServiceVersion", namespace, nameOf(version)) != nil {
		w.t.Errorf("%s is there before its InstallPlan is approved", version)
	}
	w.patch("InstallPlan", namespace, w.plan(namespace, version, "RequiresApproval"), object{"spec": object{"approved": true}})
}

// block returns the block of commands of a document below a heading that contains a text.
func (w *world) block(document, heading, contains string) string {
	w.t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	must(w.t, err)
	for n := 1; ; n++ {
		text, err := exec.CommandContext(w.t.Context(), filepath.Join(root, "hack", "commands"), filepath.Join(root, document), heading, fmt.Sprint(n)).Output()
		if err != nil {
			w.t.Fatalf("%s, %q, has no commands with %q", document, heading, contains)
		}
		if strings.Contains(string(text), contains) {
			return string(text)
		}
	}
}

// shell runs commands as the administrator, and returns what they print. oc is kubectl.
func (w *world) shell(text string) string {
	w.t.Helper()
	c := exec.CommandContext(w.t.Context(), "bash", "-euo", "pipefail", "-c", text)
	c.Dir = w.folder
	c.Env = append(os.Environ(), "PATH="+w.programs+":"+os.Getenv("PATH"), "KUBECONFIG="+server.ControlPlane(w.t).Kubeconfig, "HOME="+w.folder)
	out, err := c.CombinedOutput()
	w.t.Logf("%s\n%s", strings.TrimRight(text, "\n"), out)
	if err != nil {
		w.explain()
		w.t.Fatalf("the commands end with %v", err)
	}
	return string(out)
}

// objects returns the objects of the cluster, but for those that Kubernetes itself writes all the time.
func (w *world) objects() []string {
	w.t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(w.config)
	must(w.t, err)
	lists, err := d.ServerPreferredResources()
	must(w.t, err)
	all := map[string]bool{}
	for _, l := range lists {
		group, err := schema.ParseGroupVersion(l.GroupVersion)
		must(w.t, err)
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains([]string{"Event", "Lease", "CertificateSigningRequest", "ComponentStatus", "PackageManifest"}, r.Kind) {
				continue
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(group.WithKind(r.Kind + "List"))
			if err := w.List(w.t.Context(), list); err != nil {
				continue // its definition has just gone
			}
			for _, o := range list.Items {
				all[fmt.Sprintf("%s %s", r.Kind, client.ObjectKeyFromObject(&o))] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// annotate changes the annotations of a Node.
func (w *world) annotate(node string, annotations object) {
	w.t.Helper()
	w.patch("Node", "", node, object{"metadata": object{"annotations": annotations}})
}

func (w *world) deleteNode(name string) {
	w.t.Helper()
	must(w.t, w.Delete(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
}

// left returns the objects that were not there before, without those in the namespace of OLM.
func (w *world) left() []string {
	w.t.Helper()
	return slices.DeleteFunc(w.objects(), func(o string) bool { return slices.Contains(w.before, o) || strings.Contains(o, " "+olmNamespace+"/") })
}

// explain shows the state of OLM, of a test that fails.
func (w *world) explain() {
	c := exec.Command(filepath.Join(w.programs, "oc"), "get", "subscription,installplan,clusterserviceversion,operatorcondition,operatorgroup,deployment,pod,job", "-A", "-o", "yaml")
	c.Env = append(os.Environ(), "KUBECONFIG="+server.ControlPlane(w.t).Kubeconfig)
	out, _ := c.CombinedOutput()
	state := filepath.Join(os.TempDir(), "wmco-olm-state.yaml")
	_ = os.WriteFile(state, out, 0o600)
	w.t.Logf("the state of OLM is in %s", state)
	for _, name := range []string{"olm-operator", "catalog-operator", "opm-existing", "opm-first", "opm-second"} {
		text, _ := os.ReadFile(filepath.Join(w.folder, name+".log"))
		lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
		w.t.Logf("%s:\n%s", name, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	for _, err := range w.errors {
		w.t.Log(err)
	}
}
