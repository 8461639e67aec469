package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/warnings"
	"wmco/controller/layers"
	"wmco/controller/status"
	simcluster "wmco/internal/test/simnode/cluster"
	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/controlplane"
	"wmco/report/fleet"
)

var cluster = testenv.Environment{Options: controlplane.Options{Audit: true}}

func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(operatorVariable); kubeconfig != "" {
		os.Exit(runOperator(kubeconfig))
	}
	os.Exit(cluster.Main(m))
}

// running is the example cluster with a joined node, and the operator.
type running struct {
	client.Client
	t *testing.T
	// clock is that of the operator. It goes on while a test waits for something, and stands still while it writes.
	clock    *clocktesting.FakeClock
	operator base.Manager
	// waits has writes return when the operator's cache has them.
	waits bool
	// metrics is where the operator serves them, with the certificate in the folder.
	metrics, certificates string
	// warnings is where API servers ask about changes, with the same certificate.
	warnings string
}

const (
	nodeName         = "win-a"
	subnetAnnotation = "k8s.ovn.org/hybrid-overlay-node-subnet"
)

func start(t *testing.T) *running {
	t.Helper()
	return startWith(t, func(*Options) {})
}

// startWith starts the operator with other options.
func startWith(t *testing.T, change func(*Options)) *running {
	t.Helper()
	golden := filepath.Join("..", "golden")
	cluster.Load(t, filepath.Join(golden, "clusters", "common"), filepath.Join(golden, "clusters", "none"), filepath.Join("..", "deploy", "rbac"), filepath.Join("..", "deploy", "admission"))
	r := &running{Client: cluster.Client(t), t: t, metrics: freeAddress(t), certificates: t.TempDir(), warnings: freeAddress(t), clock: clocktesting.NewFakeClock(time.Now())}
	r.certificate("first.example.com")
	r.joined()
	// Tests create other mirror sets and delete them: the last one is guarded.
	for _, set := range []*unstructured.Unstructured{mirrorSet("base", "base.example.com"), mirrorSet("second", "second.example.com")} {
		if err := r.Create(t.Context(), set); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() { _ = simcluster.Record(ctx, cluster.Config(t), slog.New(slog.DiscardHandler)) }() // it ends with the context
	config := rest.CopyConfig(cluster.Config(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + gather.OperatorNamespace + ":" + operatorName, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	log.SetLogger(testr.New(t))
	o := Options{Config: config, HealthAddress: "0", SkipNameValidation: true, MetricsAddress: r.metrics, MetricsCertificates: r.certificates, Warnings: warnings.Serving{Address: r.warnings, Certificates: r.certificates}, LeaderElection: true, Log: testr.NewWithOptions(t, testr.Options{}), Clock: r.clock, Traffic: func() (int64, int64) { return 5, 6 }}
	change(&o)
	operator, err := New(ctx, o)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	r.operator = operator.(base.Manager) //nolint:forcetypeassert // of New
	ended := make(chan error, 1)
	go func() { ended <- operator.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = r.DeleteAllOf(context.Background(), &corev1.Secret{}, client.InNamespace(gather.OperatorNamespace), client.HasLabels{published.LayerLabel})
	})
	return r
}

// joined reports the facts of the node, as its agent does.
func (r *running) joined() {
	r.t.Helper()
	file, err := os.Open(filepath.Join("..", "golden", "facts", "none.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	all, err := bundle.DecodeFacts(file)
	if err != nil {
		r.t.Fatal(err)
	}
	text, err := published.Report{State: published.StateApplied, Facts: &all[0]}.Encode()
	if err != nil {
		r.t.Fatal(err)
	}
	node := r.node()
	before := node.DeepCopy()
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[published.ReportAnnotation] = text
	if err := r.Status().Patch(r.t.Context(), node, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) node() *corev1.Node {
	r.t.Helper()
	var n corev1.Node
	if err := r.Get(r.t.Context(), client.ObjectKey{Name: nodeName}, &n); err != nil {
		r.t.Fatal(err)
	}
	return &n
}

// desired waits for another bundle than the given one.
func (r *running) desired(before bundle.Digest) published.Desired {
	r.t.Helper()
	var d published.Desired
	if err := r.eventually("another published bundle", func() bool {
		var err error
		d, err = published.DecodeDesired(r.node().Annotations[published.DesiredAnnotation])
		return err == nil && d.Bundle != before
	}); err != nil {
		r.t.Fatal(err)
	}
	return d
}

// status returns what the operator says; nothing while the cluster does not serve the kind.
func (r *running) status() status.Status {
	r.t.Helper()
	set, err := objects.NewClusterReader(cluster.Client(r.t)).Read(r.t.Context(), []objects.Want{fleet.WantStatus(gather.OperatorNamespace)})
	if err != nil || set.Findings.Refused() {
		r.t.Fatalf("%v, %v", set.Findings, err)
	}
	if len(set.Objects) == 0 {
		return status.Status{}
	}
	s, err := status.Decode(set.Objects[0].JSON)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// condition waits for a condition.
func (r *running) condition(of string, wanted metav1.ConditionStatus) metav1.Condition {
	r.t.Helper()
	var c *metav1.Condition
	if err := r.eventually(fmt.Sprintf("%s is %s", of, wanted), func() bool {
		c = apimeta.FindStatusCondition(r.status().Conditions, of)
		return c != nil && c.Status == wanted
	}); err != nil {
		r.t.Fatal(err)
	}
	return *c
}

// event waits for an event about an object.
func (r *running) event(namespace, reason, about string) map[string]any {
	r.t.Helper()
	var found map[string]any
	if err := r.eventually("an event "+reason, func() bool {
		events := &unstructured.UnstructuredList{}
		events.SetAPIVersion("events.k8s.io/v1")
		events.SetKind("EventList")
		if err := r.List(r.t.Context(), events, client.InNamespace(namespace)); err != nil {
			r.t.Fatal(err)
		}
		for _, e := range events.Items {
			if name, _, _ := unstructured.NestedString(e.Object, "regarding", "name"); e.Object["reason"] == reason && name == about {
				found = e.Object
			}
		}
		return found != nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return found
}

// annotate sets an annotation of the node; an empty value removes it.
func (r *running) annotate(key, value string) {
	r.t.Helper()
	set := map[string]any{key: value}
	if value == "" {
		set[key] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": set}})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.Patch(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}, client.RawPatch(types.MergePatchType, patch)); err != nil {
		r.t.Fatal(err)
	}
}

// renders is how often everything was rendered.
func (r *running) renders() int { return countRenders(r.t) }

func countRenders(t testing.TB) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "wmco_renders_total" {
			return int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	t.Fatal("there is no such metric")
	return 0
}

// registries returns the names of the hosts files in the cluster layer, as a node opens it; none if another bundle has replaced it.
func (r *running) registries(d published.Desired) []string {
	r.t.Helper()
	var parts [][]byte
	for _, name := range d.Cluster.Names() {
		var s corev1.Secret
		if r.Get(r.t.Context(), client.ObjectKey{Namespace: d.Namespace, Name: name}, &s) != nil {
			return nil
		}
		parts = append(parts, s.Data[published.SecretKey])
	}
	l, err := d.Cluster.Open(parts)
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, f := range l.Files {
		if name, ok := strings.CutPrefix(f.Path, `C:\k\containerd\registries\`); ok {
			names = append(names, strings.TrimSuffix(name, `\hosts.toml`))
		}
	}
	return names
}

// mirrorSet mirrors a registry.
func mirrorSet(name, source string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"imageDigestMirrors": []any{map[string]any{"source": source, "mirrors": []any{"mirror.example.com"}}}},
	}}
}

// TestOperator runs one operator for all: controller-runtime's metrics know a controller by its name.
func TestOperator(t *testing.T) {
	r := start(t)
	r.desired("")
	r.waits = true
	for _, step := range []struct {
		name  string
		check func(*testing.T, *running)
	}{
		{"without the definition of the status", checkUnserved},
		{"a mirror set is published for every node", checkMirrorSet},
		{"refused inputs leave what is published", checkRefused},
		{"a refused node leaves the others", checkRefusedNode},
		{"inputs that are deleted as a whole", checkDeleted},
		{"a change that would stop all pods", checkHeld},
		{"oc apply warns", checkWarnings},
		{"a CA reaches a paused node", checkUrgent},
		{"a burst is one rendering", checkBurst},
		{"what others change is restored without a rendering", checkRestored},
		{"metrics are for those who may read them", checkMetricsAccess},
		{"metrics follow the TLS profile of the cluster", checkMetricsTLS},
		{"metrics say what the cluster says", checkMetrics},
	} {
		t.Run(step.name, func(t *testing.T) { r.t = t; step.check(t, r) })
		if step.name == "without the definition of the status" {
			cluster.Load(t, filepath.Join("..", "deploy", "crd"))
		}
	}
}

func checkMirrorSet(t *testing.T, r *running) {
	first := r.desired("")
	if first.MaxImpact != bundle.ImpactNone || first.Namespace != gather.OperatorNamespace {
		t.Errorf("%+v", first)
	}
	set := mirrorSet("test", "quay.io")
	if err := r.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Delete(context.Background(), set) })
	second := r.desired(first.Bundle)
	if second.Node.Digest != first.Node.Digest {
		t.Error("a mirror set changes the layer of the node")
	}
	if got := r.registries(second); !slices.Contains(got, "quay.io") {
		t.Errorf("the registries are %q", got)
	}
}

// checkRefused: the settings become invalid, and valid again.
func checkRefused(t *testing.T, r *running) {
	first := r.desired("")
	settings := &corev1.ConfigMap{}
	settings.Namespace, settings.Name, settings.Data = gather.OperatorNamespace, "windows-machine-config", map[string]string{"config.yaml": "nonsense: true\n"}
	if err := r.Create(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Delete(context.Background(), settings) })
	accepted := r.condition(status.InputsAccepted, metav1.ConditionFalse)
	for _, text := range []string{"ConfigMap/" + gather.OperatorNamespace + "/windows-machine-config", "nonsense", "fix: ", "keeping the published bundles"} {
		if !strings.Contains(accepted.Message, text) {
			t.Errorf("the message %q lacks %q", accepted.Message, text)
		}
	}
	if accepted.Reason != "SettingsInvalid" || accepted.ObservedGeneration == 0 || r.condition(status.Published, metav1.ConditionFalse).Reason != status.ReasonInputsRefused ||
		r.condition(status.RolledOut, metav1.ConditionUnknown).Reason != status.ReasonInputsRefused {
		t.Errorf("%+v", r.status())
	}
	r.event(gather.OperatorNamespace, "SettingsInvalid", operatorName)
	if now, err := published.DecodeDesired(r.node().Annotations[published.DesiredAnnotation]); err != nil || now.Bundle != first.Bundle {
		t.Errorf("refused inputs are published: %v, %v", now.Bundle, err)
	}
	settings.Data["config.yaml"] = "kubelet:\n  maxPods: 100\n"
	if err := r.Update(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	second := r.desired(first.Bundle)
	r.condition(status.InputsAccepted, metav1.ConditionTrue)
	r.condition(status.Published, metav1.ConditionTrue)
	if err := r.Delete(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	r.confirm(published.InputSettings, second.Bundle)
}

// checkRefusedNode: one of two nodes has a subnet that cannot be used.
func checkRefusedNode(t *testing.T, r *running) {
	first := r.desired("")
	before := r.node().Annotations[subnetAnnotation]
	r.annotate(subnetAnnotation, "2001:db8::/64")
	t.Cleanup(func() { r.annotate(subnetAnnotation, before) })
	if c := r.condition(status.InputsAccepted, metav1.ConditionFalse); c.Reason != status.ReasonNodesRefused || !strings.Contains(c.Message, nodeName) || !strings.Contains(c.Message, "fix: ") {
		t.Errorf("%+v", c)
	}
	r.condition(status.Published, metav1.ConditionTrue)
	if s := r.status(); s.Nodes.Refused != 1 || len(s.Refused) != 1 || s.Refused[0].Node != nodeName || s.Refused[0].Reason != "InputInvalid" || s.Refused[0].Fix == "" {
		t.Errorf("%+v", s)
	}
	r.event(metav1.NamespaceDefault, "InputInvalid", nodeName)
	if now, err := published.DecodeDesired(r.node().Annotations[published.DesiredAnnotation]); err != nil || now.Bundle != first.Bundle {
		t.Errorf("another bundle is published: %v, %v", now.Bundle, err)
	}
	// As wmco status reads it, and as somebody who may read Nodes alone does.
	f, findings, err := fleet.Read(t.Context(), objects.NewClusterReader(r), gather.OperatorNamespace, time.Now())
	if err != nil || len(findings) > 0 || f.Nodes[0].State != nodestate.Refused || f.Nodes[0].Fix == "" || len(f.Conditions) != 11+3 {
		t.Errorf("%+v, %v, %v", f, findings, err)
	}
	reader := cluster.User(t, "reader-of-nodes", testenv.Rule{Namespace: "", PolicyRule: rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}}})
	if f, findings, err := fleet.Read(t.Context(), objects.NewClusterReader(testenv.NewClient(t, reader)), gather.OperatorNamespace, time.Now()); err != nil || len(findings) > 0 || len(f.Nodes) != 1 || f.Conditions != nil {
		t.Errorf("%+v, %v, %v", f, findings, err)
	}
	r.annotate(subnetAnnotation, before)
	r.condition(status.InputsAccepted, metav1.ConditionTrue)
	if s := r.status(); s.Nodes.Total != 1 || s.Nodes.Refused != 0 || len(s.Refused) != 0 {
		t.Errorf("%+v", s)
	}
}

// checkBurst creates a hundred mirror sets at once, and removes them: each time everything is rendered once, or twice where the operator is late.
func checkBurst(t *testing.T, r *running) {
	first := r.desired("")
	before := r.renders()
	var sets []client.Object
	for i := range 100 {
		set := mirrorSet(fmt.Sprintf("burst-%d", i), fmt.Sprintf("r%d.example.com", i))
		if err := r.Client.Create(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	seen := func() {
		t.Helper()
		for _, set := range sets {
			if err := r.seen(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen()
	registries := func() int { return len(r.registries(r.desired(""))) }
	if err := r.eventually("the registries of all sets", func() bool { return registries() >= 100 }); err != nil {
		t.Error(err)
	}
	for _, set := range sets {
		if err := r.Client.Delete(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	seen()
	if err := r.eventually("the bundle from before", func() bool { return r.desired("").Bundle == first.Bundle }); err != nil {
		t.Error(err)
	}
	if got := r.renders() - before; got < 2 || got > 4 {
		t.Errorf("rendered %d times for two bursts of a hundred", got)
	}
}

// checkRestored: others remove and edit what is published.
func checkRestored(t *testing.T, r *running) {
	want := r.desired("")
	before, begun := r.renders(), r.clock.Now()
	meta := metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: layers.Access}
	layer := metav1.ObjectMeta{Namespace: gather.OperatorNamespace, Name: want.Cluster.Names()[0]}
	for name, o := range map[string]client.Object{"the Role": &rbacv1.Role{ObjectMeta: meta}, "its binding": &rbacv1.RoleBinding{ObjectMeta: meta}, "a layer": &corev1.Secret{ObjectMeta: layer}} {
		if err := r.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		o.SetResourceVersion("")
		if err := r.eventually(name, func() bool { return r.Get(t.Context(), client.ObjectKeyFromObject(o), o) == nil }); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{"", "{", strings.Replace(r.node().Annotations[published.DesiredAnnotation], `"namespace":"`, `"namespace":"x`, 1)} {
		r.annotate(published.DesiredAnnotation, text)
		if err := r.eventually("the annotation", func() bool {
			now := r.node().Annotations[published.DesiredAnnotation]
			d, err := published.DecodeDesired(now)
			return err == nil && d.Bundle == want.Bundle && now != text
		}); err != nil {
			t.Error(err)
		}
	}
	// Everything is rendered again every ten minutes.
	if got, most := r.renders()-before, 1+int(r.clock.Since(begun)/(10*time.Minute)); got > most {
		t.Errorf("rendered %d times, and at most %d are for the time", got, most)
	}
}

// checkUnserved: the operator works, and says once that there is no status.
func checkUnserved(t *testing.T, r *running) {
	r.event(gather.OperatorNamespace, "StatusNotServed", operatorName)
	first := r.desired("")
	r.annotate(published.DesiredAnnotation, "")
	if again := r.desired(""); again.Bundle != first.Bundle {
		t.Error("another bundle is published")
	}
	if got := r.event(gather.OperatorNamespace, "StatusNotServed", operatorName); got["series"] != nil {
		t.Errorf("it is said again: %v", got["series"])
	}
}
