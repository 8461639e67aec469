package prometheus_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// strict decodes an object of the Prometheus operator; a field that its API does not have is an error. go.mod has the version of the oldest clusters that are
// served, 0.78 of OpenShift 4.18: fields are only added.
func strict(text []byte) (kind string, err error) {
	var head struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(text, &head); err != nil || head.APIVersion != monitoringv1.SchemeGroupVersion.String() {
		return "", err
	}
	into := map[string]any{
		monitoringv1.ServiceMonitorsKind: &monitoringv1.ServiceMonitor{}, monitoringv1.PrometheusRuleKind: &monitoringv1.PrometheusRule{},
	}[head.Kind]
	return head.Kind, yaml.UnmarshalStrict(text, into)
}

// TestMonitoringObjects: the API server of a test does not serve these kinds, so that a misspelt field would be noticed in a cluster alone.
func TestMonitoringObjects(t *testing.T) {
	files, err := filepath.Glob("../../../deploy/monitoring/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range bytes.Split(data, []byte("\n---\n")) {
			kind, err := strict(text)
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			found[kind]++
		}
	}
	if found["ServiceMonitor"] != 2 || found["PrometheusRule"] != 2 {
		t.Errorf("%v", found)
	}
}

func TestMisspeltFieldsAreFound(t *testing.T) {
	for _, text := range []string{
		"kind: ServiceMonitor\nspec: {selector: {}, endpoint: []}", "kind: ServiceMonitor\nspec: {selector: {}, endpoints: [{tlsConfig: {serverNames: x}}]}",
		"kind: ServiceMonitor\nspec: {selector: {}, endpoints: [{relabelings: [{sourceLabel: [x]}]}]}", "kind: PrometheusRule\nspec: {groups: [{name: x, rules: [{expr: 1, foor: 5m}]}]}",
	} {
		if _, err := strict([]byte("apiVersion: monitoring.coreos.com/v1\n" + text)); err == nil || !strings.Contains(err.Error(), "unknown field") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
