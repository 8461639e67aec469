package configure

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/controller/hosts"
	"wmco/controller/status"
)

func TestTheConditionSaysWhichHostsCannotJoin(t *testing.T) {
	changes := 0
	var u Unjoined
	u.OnChange(func() { changes++ })
	listed := []Listed{{Name: "win-1"}, {Name: "192.0.2.15"}, {Name: "192.0.2.14"}}
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
		{"another one is silent", "192.0.2.14", silent("1"), metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "Unreachable", Message: "2 hosts cannot join: 192.0.2.14, 192.0.2.15; 192.0.2.14: no answer from port 1; 192.0.2.15: the host refuses the login; fix: add the public key"}, 2},
		{"still", "192.0.2.14", silent("2"), metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "Unreachable", Message: "2 hosts cannot join: 192.0.2.14, 192.0.2.15; 192.0.2.14: no answer from port 1; 192.0.2.15: the host refuses the login; fix: add the public key"}, 2},
		{"it answers", "192.0.2.14", Progress{State: StateJoining}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "LoginRefused", Message: "192.0.2.15: the host refuses the login; fix: add the public key"}, 3},
		{"the other one waits", "192.0.2.15", Progress{State: StateWaiting, Reason: "VersionUnsupported", Message: "the version is not supported"}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "VersionUnsupported", Message: "192.0.2.15: the version is not supported"}, 4},
		{"an entry that was removed", "192.0.2.99", silent("3"), metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "VersionUnsupported", Message: "192.0.2.15: the version is not supported"}, 5},
		{"and its end", "192.0.2.99", Progress{State: StateGone}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "VersionUnsupported", Message: "192.0.2.15: the version is not supported"}, 6},
		{"a lost node of a Machine", "node win-9", Progress{State: StateFailed, Reason: "CertificateExpired", Message: "expired"}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "VersionUnsupported", Message: "2 hosts cannot join: 192.0.2.15, node win-9; 192.0.2.15: the version is not supported; node win-9: expired"}, 7},
		{"which is back", "node win-9", Progress{State: StateGone}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionFalse, Reason: "VersionUnsupported", Message: "192.0.2.15: the version is not supported"}, 8},
		{"it is on its way", "192.0.2.15", Progress{State: StateJoining}, joining("3 of 3 hosts on the way to become nodes: 192.0.2.14, 192.0.2.15, win-1"), 9},
		{"one has joined", "win-1", Progress{State: StateJoined}, joining("2 of 3 hosts on the way to become nodes: 192.0.2.14, 192.0.2.15"), 10},
		{"which stays so", "win-1", Progress{State: StateJoined}, joining("2 of 3 hosts on the way to become nodes: 192.0.2.14, 192.0.2.15"), 10},
		{"a Machine is being deleted", "192.0.2.15", Progress{State: StateLeaving}, joining("1 of 3 hosts on the way to become nodes: 192.0.2.14"), 11},
		{"all others have joined", "192.0.2.14", Progress{State: StateJoined}, metav1.Condition{Type: HostsJoined, Status: metav1.ConditionTrue, Reason: "AsExpected", Message: "as expected"}, 12},
		{"one joins again", "192.0.2.14", Progress{State: StateJoining}, joining("1 of 3 hosts on the way to become nodes: 192.0.2.14"), 13},
	} {
		u.RecordProgress(step.host, step.p)
		if diff := cmp.Diff(step.want, u.HostsJoinedCondition(listed)); diff != "" || changes != step.changes {
			t.Errorf("%s: %d changes, -want +got:\n%s", step.name, changes, diff)
		}
	}
}

// A host that was not tried since the operator started has not joined, as far as is known.
func TestTheConditionCountsHostsThatWereNotTried(t *testing.T) {
	var u Unjoined
	var listed []Listed
	for i := range 12 {
		listed = append(listed, Listed{Name: fmt.Sprintf("192.0.2.%d", 10+i)})
	}
	want := "12 of 12 hosts on the way to become nodes: 192.0.2.10, 192.0.2.11, 192.0.2.12, 192.0.2.13, 192.0.2.14, 192.0.2.15, 192.0.2.16, 192.0.2.17, 192.0.2.18, 192.0.2.19, and 2 more"
	if c := u.HostsJoinedCondition(listed); c.Status != metav1.ConditionUnknown || c.Message != want {
		t.Errorf("%s: %s", c.Status, c.Message)
	}
	if c := u.HostsJoinedCondition(nil); c.Status != metav1.ConditionTrue {
		t.Errorf("without hosts: %s: %s", c.Status, c.Message)
	}
}

// TestEveryHostHasItsReasonAndFix, also one that is removed, and one that is lost. The fix of the first one alone does not help the others.
func TestEveryHostHasItsReasonAndFix(t *testing.T) {
	var u Unjoined
	listed := []Listed{{Name: "192.0.2.14", Address: "192.0.2.14"}, {Name: "win-1", Address: "192.0.2.15"}, {Name: "win-2", Address: "192.0.2.16"}, {Name: "win-3", Address: "192.0.2.17", Node: "win-3"}}
	u.RecordProgress("192.0.2.14", Progress{State: StateFailed, Reason: ReasonLoginRefused, Message: "the host refuses the login", Fix: "add the public key"})
	u.RecordProgress("win-1", Progress{State: StateWaiting, Reason: "VersionUnsupported", Message: "the version is not supported", Fix: "update the cluster"})
	u.RecordProgress("node win-9", Progress{State: StateFailed, Reason: ReasonExpired, Message: "expired", Fix: "delete the Machine"})
	u.NoteRemoval("win-8", "192.0.2.18", Progress{State: StateWaiting, Reason: "Draining", Message: "draining"})
	u.NoteRemoval("win-7", "192.0.2.19", Progress{State: StateFailed, Reason: ReasonUnreachable, Message: "removing the instance: no answer", Fix: "force it"})
	want := []status.Host{
		{Name: "192.0.2.14", Address: "192.0.2.14", State: nodestate.Degraded, Reason: ReasonLoginRefused, Message: "the host refuses the login", Fix: "add the public key"},
		{Name: "win-9", Node: "win-9", State: nodestate.Degraded, Reason: ReasonExpired, Message: "expired", Fix: "delete the Machine"},
		{Name: "win-1", Address: "192.0.2.15", State: nodestate.Waiting, Reason: "VersionUnsupported", Message: "the version is not supported", Fix: "update the cluster"},
		{Name: "win-2", Address: "192.0.2.16", State: nodestate.Joining, Reason: "Joining", Message: "the host is joining"},
		{Name: "win-7", Address: "192.0.2.19", Node: "win-7", State: nodestate.Degraded, Reason: ReasonUnreachable, Message: "removing the instance: no answer", Fix: "force it"},
		{Name: "win-8", Address: "192.0.2.18", Node: "win-8", State: nodestate.Removing, Reason: "Draining", Message: "draining"},
	}
	if diff := cmp.Diff(want, u.StatusHosts(listed)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	u.NoteRemoval("win-8", "192.0.2.18", Progress{Finished: true, Message: "done"})
	u.NoteRemoval("win-7", "", Progress{})
	if got := u.StatusHosts(nil); len(got) != 1 || got[0].Name != "win-9" {
		t.Errorf("of no listed host: %+v", got)
	}
}

// TestANewMachineMayBoot: that it does not answer yet is no failure, until it has not for long enough.
func TestANewMachineMayBoot(t *testing.T) {
	var now time.Duration
	changes := 0
	u := Unjoined{Elapsed: func() time.Duration { return now }}
	u.OnChange(func() { changes++ })
	listed := []Listed{{Name: "win-1"}}
	state := func(p Progress, want nodestate.State, wantChanges int) {
		t.Helper()
		u.RecordProgress("win-1", p)
		if got := u.StatusHosts(listed); len(got) != 1 || got[0].State != want || changes != wantChanges {
			t.Errorf("after %s: %+v, %d changes; want %s, %d changes", now, got, changes, want, wantChanges)
		}
	}
	silent := Progress{State: StateFailed, Reason: ReasonUnreachable, Message: "no answer"}
	state(silent, nodestate.Joining, 1)
	now = bootLimit - time.Second
	state(silent, nodestate.Joining, 1)
	now = bootLimit
	state(silent, nodestate.Degraded, 2)
	now += time.Hour
	state(silent, nodestate.Degraded, 2)
	state(Progress{State: StateFailed, Reason: ReasonLoginRefused, Message: "refused"}, nodestate.Degraded, 3)
	state(silent, nodestate.Joining, 4)
}

// TestANodeIsNotOnItsWayBecauseTheOperatorHasStarted: nothing waits for a host that was a node before.
func TestANodeIsNotOnItsWayBecauseTheOperatorHasStarted(t *testing.T) {
	var u Unjoined
	listed := []Listed{{Name: "win-1", Node: "win-1"}}
	if c := u.HostsJoinedCondition(listed); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	u.RecordProgress("win-1", Progress{State: StateJoining})
	if c := u.HostsJoinedCondition(listed); c.Status != metav1.ConditionUnknown {
		t.Errorf("%+v", c)
	}
}

// TestAHostThatWasRolledBackHasTheLog of the service in its event and in the status.
func TestAHostThatWasRolledBackHasTheLog(t *testing.T) {
	var u Unjoined
	log := bundle.LogTail{Service: "kubelet", Lines: []string{"exit 1"}}
	h := Host{}
	p := h.progressOfOutcome(hosts.Outcome{Event: protocol.Event{Result: protocol.ResultRolledBack, Message: "it is stopped", Log: log}})
	u.RecordProgress("win-1", p)
	if got := u.StatusHosts([]Listed{{Name: "win-1"}}); len(got) != 1 || !cmp.Equal(log, got[0].Log) {
		t.Errorf("%+v", got)
	}
	if text := p.DisplayText(); !strings.HasSuffix(text, "; the log of kubelet ends: exit 1") || !strings.Contains(text, p.Fix) {
		t.Error(text)
	}
}
