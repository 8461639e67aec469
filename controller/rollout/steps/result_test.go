package steps

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"

	"wmco/bundle"
	"wmco/controller/layers"
	"wmco/controller/rollout/plan"
)

// TestTheEventOfAStoppedRolloutHasTheLog of the service that did not start, after what to do.
func TestTheEventOfAStoppedRolloutHasTheLog(t *testing.T) {
	recorder := events.NewFakeRecorder(2)
	e := &Executor{Events: recorder, Log: logr.Discard()}
	e.sendFleetEvents(Result{Plan: plan.Plan{Fleet: plan.Summary{
		Message: "1 failed; stopped: canary a failed (rolled back); fix: correct the inputs", Stopped: "stopped",
		Log: bundle.LogTail{Service: "kubelet", Lines: []string{strings.Repeat("x", 960), "unknown flag", "exit 1"}},
	}}}, Rendered{Wanted: map[string]layers.Wanted{"a": {}}})
	const want = "Warning RolloutStopped 1 failed; stopped: canary a failed (rolled back); fix: correct the inputs; the log of kubelet ends: unknown flag | exit 1"
	if got := <-recorder.Events; got != want {
		t.Errorf("%s", got)
	}
}

// TestWhichNodesAreBeingChanged: those in their turn, and those whose step is due, unless steps fail.
func TestWhichNodesAreBeingChanged(t *testing.T) {
	r := Result{Plan: plan.Plan{Nodes: []plan.Status{
		{Node: "a", Phase: plan.PhaseUpdated, Reason: plan.ReasonUpdated}, {Node: "b", Phase: plan.PhaseUpdating, Reason: plan.ReasonStep},
		{Node: "c", Phase: plan.PhaseUpdating, Reason: plan.ReasonSettling}, {Node: "d", Phase: plan.PhaseWaiting, Reason: plan.ReasonCanary},
		{Node: "e", Phase: plan.PhaseDegraded, Reason: plan.ReasonStep},
	}}}
	if diff := cmp.Diff([]string{"b", "c"}, r.ChangingNodes()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Failed = errors.New("writing Node b: forbidden")
	if diff := cmp.Diff([]string{"c"}, r.ChangingNodes()); diff != "" {
		t.Errorf("while a step fails (-want +got):\n%s", diff)
	}
}
