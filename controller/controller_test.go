package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
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
	"wmco/bundle/published"
	"wmco/controller/base"
	"wmco/controller/fleet"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/inputs/warnings"
	"wmco/controller/status"
	simcluster "wmco/internal/test/simnode/cluster"
	"wmco/internal/test/testenv"
	"wmco/internal/test/testenv/controlplane"
)

var cluster = testenv.Environment{Options: controlplane.Options{Audit: true}}

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

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
	// health is where the kubelet asks whether the operator works.
	health string
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
	r := &running{Client: cluster.Client(t), t: t, metrics: freeAddress(t), health: freeAddress(t), certificates: t.TempDir(), warnings: freeAddress(t), clock: clocktesting.NewFakeClock(time.Now())}
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
	o := Options{Config: config, HealthAddress: r.health, SkipNameValidation: true, MetricsAddress: r.metrics, MetricsCertificates: r.certificates, Warnings: warnings.Serving{Address: r.warnings, Certificates: r.certificates}, LeaderElection: true, Log: testr.NewWithOptions(t, testr.Options{}), Clock: r.clock, Traffic: func() (int64, int64) { return 5, 6 }, Logins: func() int64 { return 7 }}
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

// status returns the operator's status; nothing while the cluster does not serve the kind.
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
