package configure

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle/nodestate"
)

// TestRemovalsThatAreStuckAreACondition: one that goes on is none, until it has taken too long.
func TestRemovalsThatAreStuckAreACondition(t *testing.T) {
	var now time.Duration
	u := Unjoined{Elapsed: func() time.Duration { return now }}
	changes := 0
	u.OnChange(func() { changes++ })
	condition := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: InstancesRemoved, Status: status, Reason: reason, Message: message}
	}
	draining := Progress{State: StateWaiting, Reason: "Draining", Message: "draining the node"}
	refused := Progress{State: StateFailed, Reason: ReasonLoginRefused, Message: "removing the instance: the host refuses the login", Fix: "add the public key"}
	unconfirmed := Progress{State: StateWaiting, Reason: ReasonNotConfirmed, Message: "the list is empty", Fix: "restore it"}
	const (
		ofTwo   = "win-2: removing the instance: the host refuses the login; fix: add the public key"
		ofThree = "win-3: the list is empty; fix: restore it"
	)
	for _, step := range []struct {
		name    string
		at      time.Duration
		node    string
		p       Progress
		state   nodestate.State
		want    metav1.Condition
		changes int
	}{
		{"none", 0, "", Progress{}, "", condition(metav1.ConditionTrue, "AsExpected", "as expected"), 0},
		{"one drains", 0, "win-1", draining, nodestate.Removing, condition(metav1.ConditionUnknown, "Removing", "1 instance being removed: win-1"), 1},
		{"it still drains", removalLimit - time.Second, "win-1", draining, nodestate.Removing, condition(metav1.ConditionUnknown, "Removing", "1 instance being removed: win-1"), 1},
		{"for too long", removalLimit, "win-1", draining, nodestate.Waiting, condition(metav1.ConditionFalse, "Draining", "win-1: draining the node"), 1},
		{"it is done", removalLimit, "win-1", Progress{Finished: true, Message: "done"}, "", condition(metav1.ConditionTrue, "AsExpected", "as expected"), 2},
		{"one is not confirmed", removalLimit, "win-3", unconfirmed, nodestate.Waiting, condition(metav1.ConditionFalse, ReasonNotConfirmed, ofThree), 3},
		{"another one refuses the login, which is more severe", removalLimit, "win-2", refused, nodestate.Degraded, condition(metav1.ConditionFalse, ReasonLoginRefused, "2 instances cannot be removed: win-2, win-3; "+ofTwo+"; "+ofThree), 4},
		{"it has an entry again", removalLimit, "win-2", Progress{}, "", condition(metav1.ConditionFalse, ReasonNotConfirmed, ofThree), 5},
		{"a removal that begins again has its whole time", removalLimit, "win-1", draining, nodestate.Removing, condition(metav1.ConditionFalse, ReasonNotConfirmed, ofThree), 6},
	} {
		now = step.at
		if step.node != "" {
			u.NoteRemoval(step.node, "192.0.2.1", step.p)
		}
		if diff := cmp.Diff(step.want, u.InstancesRemovedCondition()); diff != "" || changes != step.changes {
			t.Errorf("%s: %d changes, -want +got:\n%s", step.name, changes, diff)
		}
		var state nodestate.State
		for _, h := range u.StatusHosts(nil) {
			if h.Name == step.node {
				state = h.State
			}
		}
		if state != step.state {
			t.Errorf("%s: %s, want %s", step.name, state, step.state)
		}
	}
}
