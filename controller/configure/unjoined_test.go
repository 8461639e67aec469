package configure

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheConditionSaysWhichHostsCannotJoin(t *testing.T) {
	changes := 0
	u := Unjoined{Changed: func() { changes++ }}
	listed := []string{"win-1", "192.0.2.15", "192.0.2.14"}
	joining := func(message string) metav1.Condition {
		return metav1.Condition{Type: HostsJoined, Status: metav1.ConditionUnknown, Reason: "Joining", Message: message}
	}
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
		{"one is on its way", "win-1", Progress{State: StateJoining}, joining("3 of 3 hosts on the way to become nodes: 192.0.2.14, 192.0.2.15, win-1"), 0},
		{"one refuses the login", "192.0.2.15", refused, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "LoginRefused", Message: "192.0.2.15: the host refuses the login; fix: add the public key"}, 1},
		{"again", "192.0.2.15", refused, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "LoginRefused", Message: "192.0.2.15: the host refuses the login; fix: add the public key"}, 1},
		{"another one is silent", "192.0.2.14", silent("1"), metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "Unreachable", Message: "2 hosts cannot join: 192.0.2.14, 192.0.2.15; 192.0.2.14: no answer from port 1"}, 2},
		{"still", "192.0.2.14", silent("2"), metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "Unreachable", Message: "2 hosts cannot join: 192.0.2.14, 192.0.2.15; 192.0.2.14: no answer from port 1"}, 2},
		{"it answers", "192.0.2.14", Progress{State: StateJoining}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "LoginRefused", Message: "192.0.2.15: the host refuses the login; fix: add the public key"}, 3},
		{"the other one waits", "192.0.2.15", Progress{State: StateWaiting, Reason: "VersionUnsupported", Message: "the version is not supported"}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "VersionUnsupported", Message: "192.0.2.15: the version is not supported"}, 4},
		{"an entry that was removed", "192.0.2.99", silent("3"), metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "VersionUnsupported", Message: "192.0.2.15: the version is not supported"}, 5},
		{"and its end", "192.0.2.99", Progress{State: StateGone}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "VersionUnsupported", Message: "192.0.2.15: the version is not supported"}, 6},
		{"a lost node of a Machine", "node win-9", Progress{State: StateFailed, Reason: "CertificateExpired", Message: "expired"}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "VersionUnsupported", Message: "2 hosts cannot join: 192.0.2.15, node win-9; 192.0.2.15: the version is not supported"}, 7},
		{"which is back", "node win-9", Progress{State: StateGone}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "VersionUnsupported", Message: "192.0.2.15: the version is not supported"}, 8},
		{"it is on its way", "192.0.2.15", Progress{State: StateJoining}, joining("3 of 3 hosts on the way to become nodes: 192.0.2.14, 192.0.2.15, win-1"), 9},
		{"one has joined", "win-1", Progress{State: StateJoined}, joining("2 of 3 hosts on the way to become nodes: 192.0.2.14, 192.0.2.15"), 10},
		{"which stays so", "win-1", Progress{State: StateJoined}, joining("2 of 3 hosts on the way to become nodes: 192.0.2.14, 192.0.2.15"), 10},
		{"a Machine is being deleted", "192.0.2.15", Progress{State: StateLeaving}, joining("1 of 3 hosts on the way to become nodes: 192.0.2.14"), 11},
		{"all others have joined", "192.0.2.14", Progress{State: StateJoined}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionTrue, Reason: "AsExpected", Message: "as expected"}, 12},
		{"one joins again", "192.0.2.14", Progress{State: StateJoining}, joining("1 of 3 hosts on the way to become nodes: 192.0.2.14"), 13},
	} {
		u.Note(step.host, step.p)
		if diff := cmp.Diff(step.want, u.Condition(listed)); diff != "" || changes != step.changes {
			t.Errorf("%s: %d changes, -want +got:\n%s", step.name, changes, diff)
		}
	}
}

// A host that was not tried since the operator started has not joined, as far as is known.
func TestTheConditionCountsHostsThatWereNotTried(t *testing.T) {
	var u Unjoined
	var listed []string
	for i := range 12 {
		listed = append(listed, fmt.Sprintf("192.0.2.%d", 10+i))
	}
	want := "12 of 12 hosts on the way to become nodes: 192.0.2.10, 192.0.2.11, 192.0.2.12, 192.0.2.13, 192.0.2.14, 192.0.2.15, 192.0.2.16, 192.0.2.17, 192.0.2.18, 192.0.2.19, and 2 more"
	if c := u.Condition(listed); c.Status != metav1.ConditionUnknown || c.Message != want {
		t.Errorf("%s: %s", c.Status, c.Message)
	}
	if c := u.Condition(nil); c.Status != metav1.ConditionTrue {
		t.Errorf("without hosts: %s: %s", c.Status, c.Message)
	}
}
