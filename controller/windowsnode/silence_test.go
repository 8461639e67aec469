package windowsnode

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/published"
)

// reporting is a Ready Node whose agent and kubelet have given signs of life at these times by its clock.
func reporting(agent, kubelet time.Time) corev1.Node {
	return corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(kubelet)},
		{Type: published.Condition, LastHeartbeatTime: metav1.NewTime(agent)},
	}}}
}

// TestSilenceOfOneNode is known from the node's own clock, whatever it shows.
func TestSilenceOfOneNode(t *testing.T) {
	for name, tt := range map[string]struct {
		agent, kubelet time.Time
		want           time.Duration
	}{
		"both live":                {noon(), noon().Add(time.Minute), time.Minute},
		"the agent is dead":        {noon(), noon().Add(2 * time.Hour), 2 * time.Hour},
		"the kubelet is older":     {noon().Add(time.Minute), noon(), 0},
		"the agent has never been": {time.Time{}, noon(), 0},
		"no kubelet has reported":  {noon(), time.Time{}, 0},
	} {
		if got := SilenceByKubelet(Decode(reporting(tt.agent, tt.kubelet))); got != tt.want {
			t.Errorf("%s: %s, not %s", name, got, tt.want)
		}
	}
}

// TestSilentAgents: one that has reported, and does not for half an hour while its kubelet lives.
func TestSilentAgents(t *testing.T) {
	after := func(d time.Duration) Silence { return func(Node) time.Duration { return d } }
	lost := reporting(noon(), noon())
	lost.Status.Conditions[0].Status = corev1.ConditionUnknown
	adopting := reporting(noon(), noon())
	report, err := published.Report{State: published.StateRolledBack, Adopting: true}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	adopting.Annotations = map[string]string{published.ReportAnnotation: report}
	for name, tt := range map[string]struct {
		silence time.Duration
		node    corev1.Node
		want    bool
	}{
		"it reports":              {published.SilentAfter, reporting(noon(), noon()), false},
		"it does not":             {published.SilentAfter + 1, reporting(noon(), noon()), true},
		"the kubelet is lost":     {published.SilentAfter + 1, lost, false},
		"it has never reported":   {published.SilentAfter + 1, reporting(time.Time{}, noon()), false},
		"a Node without an agent": {published.SilentAfter + 1, corev1.Node{}, false},
		"the operator reports":    {published.SilentAfter + 1, adopting, false},
	} {
		if got := after(tt.silence).IsSilent(Decode(tt.node)); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
