package steps

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"

	"wmco/bundle"
	"wmco/controller/rollout/plan"
)

// TestTheEventOfAStoppedRolloutHasTheLog of the service that did not start, after what to do.
func TestTheEventOfAStoppedRolloutHasTheLog(t *testing.T) {
	recorder := events.NewFakeRecorder(2)
	e := &Executor{Events: recorder, Log: logr.Discard()}
	e.sendFleetEvents(Result{Plan: plan.Plan{Fleet: plan.Summary{
		Message: "1 failed; stopped: the canary a (rolled back) (fix: correct the inputs)", Stopped: "stopped",
		Log: bundle.LogTail{Service: "kubelet", Lines: []string{strings.Repeat("x", 960), "unknown flag", "exit 1"}},
	}}}, Rendered{Wanted: map[string]Wanted{"a": {}}})
	const want = "Warning RolloutStopped 1 failed; stopped: the canary a (rolled back) (fix: correct the inputs); the log of kubelet ends: unknown flag | exit 1"
	if got := <-recorder.Events; got != want {
		t.Errorf("%s", got)
	}
}
