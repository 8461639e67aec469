package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/gather"
	"wmco/internal/testenv"
)

var cluster testenv.Environment

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }

// running is the example cluster with a joined node, and the operator.
type running struct {
	client.Client
	t *testing.T
}

const nodeName = "win-a"

func start(t *testing.T) *running {
	t.Helper()
	golden := filepath.Join("..", "golden")
	cluster.Load(t, filepath.Join(golden, "clusters", "common"), filepath.Join(golden, "clusters", "none"), filepath.Join("..", "deploy", "rbac"))
	r := &running{Client: cluster.Client(t), t: t}
	r.joined()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	config := rest.CopyConfig(cluster.Config(t))
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + gather.OperatorNamespace + ":" + operatorName, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	log.SetLogger(testr.New(t))
	go func() {
		ended <- Run(ctx, Options{Config: config, HealthAddress: "0", MetricsAddress: "0", LeaderElection: true, Log: testr.NewWithOptions(t, testr.Options{})})
	}()
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
	if err := testenv.Eventually(r.t.Context(), "another published bundle", func() bool {
		var err error
		d, err = published.DecodeDesired(r.node().Annotations[published.DesiredAnnotation])
		return err == nil && d.Bundle != before
	}); err != nil {
		r.t.Fatal(err)
	}
	return d
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
	t.Run("a mirror set is published for every node", func(t *testing.T) { r.t = t; checkMirrorSet(t, r) })
	t.Run("refused inputs leave what is published", func(t *testing.T) { r.t = t; checkRefused(t, r) })
	t.Run("a burst", func(t *testing.T) { r.t = t; checkBurst(t, r) })
}

func checkMirrorSet(t *testing.T, r *running) {
	first := r.desired("")
	if first.MaxImpact != bundle.ImpactRestart || first.Namespace != gather.OperatorNamespace {
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
	err := testenv.Eventually(t.Context(), "an event about the settings", func() bool {
		events := &unstructured.UnstructuredList{}
		events.SetAPIVersion("events.k8s.io/v1")
		events.SetKind("EventList")
		if err := r.List(t.Context(), events, client.InNamespace(gather.OperatorNamespace)); err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			if e.Object["reason"] == "SettingsInvalid" {
				return true
			}
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	if now, err := published.DecodeDesired(r.node().Annotations[published.DesiredAnnotation]); err != nil || now.Bundle != first.Bundle {
		t.Errorf("refused inputs are published: %v, %v", now.Bundle, err)
	}
	settings.Data["config.yaml"] = "kubelet:\n  maxPods: 100\n"
	if err := r.Update(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	r.desired(first.Bundle)
}

// checkBurst creates many mirror sets at once: the node learns of few bundles.
func checkBurst(t *testing.T, r *running) {
	seen := map[bundle.Digest]bool{}
	for i := range 50 {
		set := mirrorSet(fmt.Sprintf("burst-%d", i), fmt.Sprintf("r%d.example.com", i))
		if err := r.Create(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Delete(context.Background(), set) })
	}
	err := testenv.Eventually(t.Context(), "the last mirror set", func() bool {
		d, err := published.DecodeDesired(r.node().Annotations[published.DesiredAnnotation])
		if err != nil {
			return false
		}
		seen[d.Bundle] = true
		return len(r.registries(d)) >= 50
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) > 10 {
		t.Errorf("%d bundles for one burst", len(seen))
	}
}
