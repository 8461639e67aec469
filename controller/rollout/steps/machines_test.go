package steps

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestImpatientHealthChecks(t *testing.T) {
	const took = 10 * time.Minute
	short := machinev1beta1.UnhealthyCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Timeout: metav1.Duration{Duration: 5 * time.Minute}}
	with := func(change func(*machinev1beta1.UnhealthyCondition)) machinev1beta1.UnhealthyCondition {
		c := short
		change(&c)
		return c
	}
	for _, tt := range []struct {
		name  string
		label string
		list  []machinev1beta1.UnhealthyCondition
		want  time.Duration
	}{
		{"shorter than a boot", "windows", []machinev1beta1.UnhealthyCondition{short}, 5 * time.Minute},
		{"the shortest of two", "windows", []machinev1beta1.UnhealthyCondition{with(func(c *machinev1beta1.UnhealthyCondition) { c.Timeout.Duration = 8 * time.Minute }), short}, 5 * time.Minute},
		{"longer than a boot", "windows", []machinev1beta1.UnhealthyCondition{with(func(c *machinev1beta1.UnhealthyCondition) { c.Timeout.Duration = took })}, 0},
		{"another condition", "windows", []machinev1beta1.UnhealthyCondition{with(func(c *machinev1beta1.UnhealthyCondition) { c.Type = corev1.NodeDiskPressure })}, 0},
		{"other Machines", "linux", []machinev1beta1.UnhealthyCondition{short}, 0},
	} {
		check := machinev1beta1.MachineHealthCheck{Spec: machinev1beta1.MachineHealthCheckSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"os": tt.label}}, UnhealthyConditions: tt.list,
		}}
		m := machinev1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"os": "windows"}}}
		if got, ok := timesOutBefore(check, m, took); got != tt.want || ok != (tt.want > 0) {
			t.Errorf("%s: %s, %v", tt.name, got, ok)
		}
	}
}
