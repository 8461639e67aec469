package controller

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/controller/status"
)

// sendReport reports for the node, with its facts.
func (r *running) sendReport(report published.Report) {
	r.t.Helper()
	before, err := published.DecodeReport(r.node().Annotations[published.ReportAnnotation])
	if err != nil {
		r.t.Fatal(err)
	}
	report.Facts = before.Facts
	text, err := report.Encode()
	if err != nil {
		r.t.Fatal(err)
	}
	r.annotate(published.ReportAnnotation, text)
}

func has(d published.Desired) published.Report {
	return published.Report{State: published.StateApplied, Desired: d.Bundle, Applied: d.Bundle, Layers: []bundle.Digest{d.Cluster.Digest, d.Node.Digest}}
}

// file returns the text of a file of a published cluster layer.
func (r *running) file(d published.Desired, path string) string {
	r.t.Helper()
	var parts [][]byte
	for _, name := range d.Cluster.Names() {
		var s corev1.Secret
		if err := r.Get(r.t.Context(), client.ObjectKey{Namespace: d.Namespace, Name: name}, &s); err != nil {
			r.t.Fatal(err)
		}
		parts = append(parts, s.Data[published.SecretKey])
	}
	l, err := d.Cluster.Open(parts)
	if err != nil {
		r.t.Fatal(err)
	}
	i := slices.IndexFunc(l.Files, func(f bundle.File) bool { return f.Path == path })
	if i < 0 {
		return ""
	}
	return string(l.Files[i].Content.Data)
}

// addClientCA rotates the CA whose clients may call the kubelet, as the cluster does: the new one is added to the old one.
func (r *running) addClientCA() (added string, restore func()) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "golden", "clusters", "traits", "trusted-ca", "trusted-ca.yaml"))
	if err != nil {
		r.t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	begin, end := slices.IndexFunc(lines, isLine("-----BEGIN CERTIFICATE-----")), slices.IndexFunc(lines, isLine("-----END CERTIFICATE-----"))
	for _, line := range lines[begin : end+1] {
		added += strings.TrimSpace(line) + "\n"
	}
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("machineconfiguration.openshift.io/v1")
	u.SetKind("ControllerConfig")
	if err := r.Get(r.t.Context(), client.ObjectKey{Name: "machine-config-controller"}, u); err != nil {
		r.t.Fatal(err)
	}
	before, _, _ := unstructured.NestedString(u.Object, "spec", "kubeAPIServerServingCAData")
	set := func(value string) {
		next := u.DeepCopy()
		if err := unstructured.SetNestedField(next.Object, value, "spec", "kubeAPIServerServingCAData"); err != nil {
			r.t.Fatal(err)
		}
		if err := r.Patch(context.Background(), next, client.MergeFrom(u)); err != nil {
			r.t.Error(err)
		}
		u = next
	}
	old, err := base64.StdEncoding.DecodeString(before)
	if err != nil {
		r.t.Fatal(err)
	}
	set(base64.StdEncoding.EncodeToString(append(old, added...)))
	return added, func() { set(before) }
}

func isLine(text string) func(string) bool {
	return func(line string) bool { return strings.TrimSpace(line) == text }
}

// checkUrgent: a CA is rotated while a node is paused and a mirror set waits. The node is told of the CA alone, and people if it does
// not take it.
func checkUrgent(t *testing.T, r *running) {
	first := r.desired("")
	before := r.node().Annotations[published.ReportAnnotation]
	t.Cleanup(func() {
		r.annotate(published.PausedAnnotation, "")
		r.annotate(published.ReportAnnotation, before)
	})
	r.sendReport(has(first))
	r.annotate(published.PausedAnnotation, "true")
	set := mirrorSet("waits", "waits.example.com")
	if err := r.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	added, restore := r.addClientCA()
	var undone sync.Once
	undo := func() {
		undone.Do(func() {
			restore()
			_ = r.Delete(context.Background(), set)
		})
	}
	t.Cleanup(undo)
	second := r.desired(first.Bundle)
	if !second.Urgent || second.MaxImpact != bundle.ImpactNone || second.Node.Digest != first.Node.Digest || !slices.Equal(second.Inputs, first.Inputs) {
		t.Errorf("%+v", second)
	}
	if !strings.Contains(r.file(second, `C:\k\kubelet-ca.crt`), added) || slices.Contains(r.registries(second), "waits.example.com") {
		t.Errorf("the paused node is told of %q", r.registries(second))
	}
	refused := has(first)
	refused.State, refused.Desired, refused.Impact, refused.Message = published.StateNeedsPermission, second.Bundle, bundle.ImpactRestart, "a service reads the file"
	r.sendReport(refused)
	held := r.condition(status.UrgentInputsReached, metav1.ConditionFalse)
	if held.Reason != status.ReasonUrgentHeld || !strings.Contains(held.Message, nodeName+": the kubelet client CA (") || !strings.Contains(held.Message, "expires on 20") || !strings.Contains(held.Message, refused.Message) {
		t.Errorf("%+v", held)
	}
	if got := gauges(t, "wmco_urgent_input_held_nodes"); got["kubelet client CA"] != 1 || got["pull secret"] != 0 {
		t.Errorf("held: %v", got)
	}
	if got := gauges(t, "wmco_urgent_input_expiry_timestamp_seconds"); got["kubelet client CA"] < 1e9 {
		t.Errorf("expires: %v", got)
	}
	r.sendReport(has(second))
	r.condition(status.UrgentInputsReached, metav1.ConditionTrue)
	r.annotate(published.PausedAnnotation, "")
	third := r.desired(second.Bundle)
	if third.Urgent || !strings.Contains(r.file(third, `C:\k\kubelet-ca.crt`), added) || !slices.Contains(r.registries(third), "waits.example.com") {
		t.Errorf("%+v, %q", third, r.registries(third))
	}
	r.sendReport(has(third))
	undo()
	if err := r.eventually("the first bundle again, and no layer that nobody needs", func() bool {
		d, err := published.DecodeDesired(r.node().Annotations[published.DesiredAnnotation])
		if err == nil && d.Bundle == first.Bundle && r.node().Annotations[published.ReportAnnotation] != before {
			r.annotate(published.ReportAnnotation, before)
		}
		var s corev1.Secret
		return err == nil && d.Bundle == first.Bundle && r.Get(t.Context(), client.ObjectKey{Namespace: d.Namespace, Name: second.Cluster.Names()[0]}, &s) != nil
	}); err != nil {
		t.Error(err)
	}
}

// gauges returns the values of a metric by the value of its one label.
func gauges(t *testing.T, name string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			all[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return all
}
