package prometheus_test

import (
	"os"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"sigs.k8s.io/yaml"
)

// relabelingsOf returns the relabelings of a ServiceMonitor, as the Prometheus operator hands them to Prometheus.
func relabelingsOf(t *testing.T, file string) []*relabel.Config {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/monitoring/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var monitor monitoringv1.ServiceMonitor
	if err := yaml.Unmarshal(text, &monitor); err != nil {
		t.Fatal(err)
	}
	var list []*relabel.Config
	for _, r := range monitor.Spec.Endpoints[0].RelabelConfigs {
		c := relabel.DefaultRelabelConfig
		c.NameValidationScheme = model.UTF8Validation
		c.Action, c.TargetLabel = relabel.Action(r.Action), r.TargetLabel
		for _, name := range r.SourceLabels {
			c.SourceLabels = append(c.SourceLabels, model.LabelName(name))
		}
		if r.Regex != "" {
			c.Regex = relabel.MustNewRegexp(r.Regex)
		}
		if r.Replacement != nil {
			c.Replacement = *r.Replacement
		}
		list = append(list, &c)
	}
	return list
}

// TestWindowsNodesAreTargetsByTheirNames, with either role with which Prometheus finds them. Prometheus has the address as instance before these relabelings.
func TestWindowsNodesAreTargetsByTheirNames(t *testing.T) {
	steps := relabelingsOf(t, "windows-exporter-servicemonitor.yaml")
	for _, role := range []string{"endpoint", "endpointslice"} {
		found := map[string]string{
			"__address__": "10.0.140.21:10250", "instance": "10.0.140.21:10250",
			"__meta_kubernetes_node_label_kubernetes_io_os":      "windows",
			"__meta_kubernetes_" + role + "_address_target_name": "win-a",
			"__meta_kubernetes_" + role + "_address_target_kind": "Node",
			"__meta_kubernetes_namespace":                        "kube-system",
		}
		got, keep := relabel.Process(labels.FromMap(found), steps...)
		if !keep || got.Get("instance") != "win-a" || got.Get("__address__") != "10.0.140.21:9182" || got.Get("job") != "windows-exporter" {
			t.Errorf("%s: kept %t, %s", role, keep, got)
		}
		found["__meta_kubernetes_node_label_kubernetes_io_os"] = "linux"
		if _, keep := relabel.Process(labels.FromMap(found), steps...); keep {
			t.Errorf("%s: a node of Linux is a target", role)
		}
	}
}
