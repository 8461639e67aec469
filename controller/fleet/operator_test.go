package fleet

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/nodestate"
	"wmco/bundle/published"
	"wmco/controller/windowsnode"
)

// TestWhenTheOperatorIsSilent: its Lease shows it, whoever holds it.
func TestWhenTheOperatorIsSilent(t *testing.T) {
	lease := func(renewed time.Duration, lasts int32) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &lasts, RenewTime: &metav1.MicroTime{Time: now().Add(-renewed)}}}
	}
	made := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now().Add(-time.Hour))}}
	for _, c := range []struct {
		name  string
		lease *coordinationv1.Lease
		// silent begins the problem after the name of the namespace.
		silent string
	}{
		{"it has just renewed", lease(10*time.Second, 137), ""},
		{"its clock is ahead", lease(-time.Hour, 137), ""},
		{"another process may still take over", lease(137*time.Second+5*time.Minute, 137), ""},
		{"no other process has", lease(8*time.Minute, 137), "has been silent for 8m"},
		{"it gave the Lease back and no other took it", lease(6*time.Minute, 1), "has been silent for 6m"},
		{"it made the Lease and never held it", made, "has been silent for 60m"},
		{"there is no Lease", nil, ""},
	} {
		o := operatorOf(c.lease, "here", now())
		if (o.Problem == "") != (c.silent == "") || !strings.HasPrefix(o.Problem, strings.TrimSpace("the operator in namespace here "+c.silent)) && c.silent != "" || (o.Problem == "") != (o.Fix == "") || o.Heard.IsZero() != (c.lease == nil) {
			t.Errorf("%s: %+v", c.name, o)
		}
		f := Fleet{Operator: o}
		if f.IsDone() != (c.silent == "") {
			t.Errorf("%s: done is %t", c.name, f.IsDone())
		}
	}
}

// TestAnOperatorIsAbsentOnlyWhereItHasSaidNothing: one without leader election has no Lease.
func TestAnOperatorIsAbsentOnlyWhereItHasSaidNothing(t *testing.T) {
	for name, c := range map[string]struct {
		fleet  Fleet
		absent bool
	}{
		"neither a Lease nor a word": {Fleet{}, true},
		"it has a condition":         {Fleet{Conditions: []metav1.Condition{{Type: "Published", Status: metav1.ConditionTrue}}}, false},
		"it has a Lease":             {Fleet{Operator: Operator{Heard: now()}}, false},
		"the Lease may not be read":  {Fleet{Operator: Operator{Note: "it is not known"}}, false},
	} {
		f := c.fleet
		f.NoteAbsence("here")
		if got := strings.HasPrefix(f.Operator.Problem, "no operator in namespace here"); got != c.absent || f.IsDone() == c.absent {
			t.Errorf("%s: %+v", name, f.Operator)
		}
	}
}

// TestANodeThatIsNotReady is explained where it has no other message.
func TestANodeThatIsNotReady(t *testing.T) {
	wanted := desired(t).Bundle
	for _, c := range []struct {
		name   string
		status corev1.ConditionStatus
		state  published.State
		// message is the expected one, done is the fleet of the node.
		message string
		done    bool
	}{
		{"updated and Ready", corev1.ConditionTrue, published.StateApplied, "", true},
		{"updated and silent", corev1.ConditionUnknown, published.StateApplied, "the Node has not been Ready since 2026-01-01T11:00:00Z: runtime is down", false},
		{"updated and not Ready", corev1.ConditionFalse, published.StateApplied, "the Node has not been Ready since 2026-01-01T11:00:00Z: runtime is down", false},
		{"rolled back and not Ready", corev1.ConditionFalse, published.StateRolledBack, "the kubelet", false},
		{"updating, which restarts the kubelet", corev1.ConditionFalse, published.StateApplying, "", false},
	} {
		r := published.Report{State: c.state, Desired: wanted}
		if c.state == published.StateRolledBack {
			r.Message = "the kubelet"
		}
		object := node(t, &r, now())
		ready := &object.Status.Conditions[0]
		ready.Status, ready.Message, ready.LastTransitionTime = c.status, "runtime\nis\x07 down", metav1.NewTime(now().Add(-time.Hour))
		n := windowsnode.Decode(object)
		row := Of(n, windowsnode.SilenceByKubelet)
		state := row.State
		row.noteReady(n)
		if row.Ready != c.status || row.Message != c.message || row.State != state || row.IsReady() != (c.status == corev1.ConditionTrue) || (Fleet{Nodes: []Row{row}}).IsDone() != c.done {
			t.Errorf("%s: %+v", c.name, row)
		}
		if c.message != "" && row.Fix == "" {
			t.Errorf("%s: no fix", c.name)
		}
	}
	if row := (Row{State: nodestate.Updated}); !row.IsReady() {
		t.Error("a Node of a file without the condition counts as not Ready")
	}
}
