package join

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheConditionSaysWhichHostsCannotJoin(t *testing.T) {
	changes := 0
	u := Unjoined{Changed: func() { changes++ }}
	refused := Progress{State: StateFailed, Reason: ReasonLoginRefused, Message: "the host refuses the login", Fix: "add the public key"}
	silent := func(port string) Progress {
		return Progress{State: StateFailed, Reason: ReasonUnreachable, Message: "no answer from port " + port}
	}
	for _, step := range []struct {
		name    string
		host    string
		p       Progress
		want    metav1.Condition
		changes int
	}{
		{"nothing is wrong", "win-1", Progress{State: StateJoining}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionTrue, Reason: "AsExpected", Message: "as expected"}, 0},
		{"one refuses the login", "192.0.2.15", refused, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "LoginRefused", Message: "192.0.2.15: the host refuses the login; fix: add the public key"}, 1},
		{"again", "192.0.2.15", refused, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "LoginRefused", Message: "192.0.2.15: the host refuses the login; fix: add the public key"}, 1},
		{"another one is silent", "192.0.2.14", silent("1"), metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "Unreachable", Message: "2 hosts cannot join: 192.0.2.14, 192.0.2.15; 192.0.2.14: no answer from port 1"}, 2},
		{"still", "192.0.2.14", silent("2"), metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "Unreachable", Message: "2 hosts cannot join: 192.0.2.14, 192.0.2.15; 192.0.2.14: no answer from port 1"}, 2},
		{"it answers", "192.0.2.14", Progress{State: StateJoining}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "LoginRefused", Message: "192.0.2.15: the host refuses the login; fix: add the public key"}, 3},
		{"the other one waits", "192.0.2.15", Progress{State: StateWaiting, Reason: "VersionUnsupported", Message: "the version is not supported"}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "VersionUnsupported", Message: "192.0.2.15: the version is not supported"}, 4},
		{"and is removed from the inputs", "192.0.2.15", Progress{State: StateGone}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionTrue, Reason: "AsExpected", Message: "as expected"}, 5},
	} {
		u.Note(step.host, step.p)
		if diff := cmp.Diff(step.want, u.Condition()); diff != "" || changes != step.changes {
			t.Errorf("%s: %d changes, -want +got:\n%s", step.name, changes, diff)
		}
	}
}
