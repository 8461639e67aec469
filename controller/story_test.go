package controller

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/fleet"
	"wmco/controller/gather"
	"wmco/controller/gather/objects"
	"wmco/controller/layers"
	"wmco/controller/status"
	"wmco/internal/test/testenv"
)

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
		{"a cluster of the last minor versions of OpenShift 4", checkLastOfFour},
		{"a burst is one rendering", checkBurst},
		{"what others change is restored without a rendering", checkRestored},
		{"probes are answered", checkProbes},
		{"metrics are for those who may read them", checkMetricsAccess},
		{"metrics follow the TLS profile of the cluster", checkMetricsTLS},
		{"metrics have the cluster's state", checkMetrics},
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
	for _, text := range []string{"ConfigMap/" + gather.OperatorNamespace + "/windows-machine-config", "nonsense", "fix: ", "keep their published bundles"} {
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
	// As wmco status reads it, and as a user who may read Nodes alone does.
	f, findings, err := fleet.Read(t.Context(), objects.NewClusterReader(r), gather.OperatorNamespace, time.Now())
	if err != nil || len(findings) > 0 || f.Nodes[0].State != nodestate.Refused || f.Nodes[0].Fix == "" || len(f.Conditions) != 13+3 {
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

// checkRestored: others remove and edit published objects.
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

// checkUnserved: the operator works, and reports once that there is no status.
func checkUnserved(t *testing.T, r *running) {
	r.event(gather.OperatorNamespace, "StatusNotServed", operatorName)
	first := r.desired("")
	r.annotate(published.DesiredAnnotation, "")
	if again := r.desired(""); again.Bundle != first.Bundle {
		t.Error("another bundle is published")
	}
	if got := r.event(gather.OperatorNamespace, "StatusNotServed", operatorName); got["series"] != nil {
		t.Errorf("it is reported again: %v", got["series"])
	}
}
