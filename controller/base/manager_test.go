package base

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// TestTheLeaseIsReleasedBeforeTheKubeletKillsTheOperator: otherwise the next one waits for two minutes.
func TestTheLeaseIsReleasedBeforeTheKubeletKillsTheOperator(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "manager", "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	grace := d.Spec.Template.Spec.TerminationGracePeriodSeconds
	if grace == nil || time.Duration(*grace)*time.Second < StopWithin+5*time.Second {
		t.Errorf("the Pod has %v seconds, and the operator takes %s without the Lease", grace, StopWithin)
	}
}
