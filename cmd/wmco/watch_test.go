package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"wmco/bundle"
	"wmco/bundle/nodestate"
	"wmco/controller/fleet"
	"wmco/controller/rollout/plan"
	"wmco/controller/status"
	"wmco/internal/cli"
)

func row(node string, state nodestate.State, desired string) fleet.Row {
	return fleet.Row{Node: node, State: state, Desired: bundle.Of([]byte(desired))}
}

// TestWatchPrintsTheMovesOfNodes: three nodes get a new bundle, one of them fails, and one leaves.
func TestWatchPrintsTheMovesOfNodes(t *testing.T) {
	clock := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	a := app{stdout: &out, now: func() time.Time { return clock }}
	f := statusFlags{format: cli.Text}
	w := newWatched(fleet.Fleet{Nodes: []fleet.Row{row("win-a", nodestate.Updated, "1"), row("win-b", nodestate.Updated, "1"), row("winworker-x7k2p", nodestate.Updated, "1")}}, clock)
	look := func(after time.Duration, now fleet.Fleet) {
		t.Helper()
		clock = clock.Add(after)
		if err := f.printMoves(a, w, now); err != nil {
			t.Fatal(err)
		}
	}
	failed := row("win-b", nodestate.Degraded, "2")
	failed.Message, failed.Fix = "kubelet does not become healthy", "correct the settings"
	refused := []metav1.Condition{{Type: "InputsAccepted", Status: metav1.ConditionFalse, Reason: "SettingsInvalid", Message: "no", LastTransitionTime: metav1.NewTime(clock)}}
	waits := []metav1.Condition{{Type: status.RolledOut, Status: metav1.ConditionFalse, Reason: "RollingOut", Message: "win-b waits", LastTransitionTime: metav1.NewTime(clock)}}
	accepted := []metav1.Condition{{Type: "InputsAccepted", Status: metav1.ConditionTrue, Reason: "Accepted", Message: "yes", LastTransitionTime: metav1.NewTime(clock)}}
	published := []metav1.Condition{{Type: "Published", Status: metav1.ConditionTrue, Reason: "Published", Message: "yes", LastTransitionTime: metav1.NewTime(clock)}}
	// One node is quicker than a look. The operator begins to say that all is well.
	look(time.Second, fleet.Fleet{Conditions: published, Nodes: []fleet.Row{row("win-a", nodestate.Stale, "2"), row("win-b", nodestate.Updating, "2"), row("winworker-x7k2p", nodestate.Updated, "2")}})
	look(time.Second, fleet.Fleet{Nodes: []fleet.Row{row("win-a", nodestate.Stale, "2"), row("win-b", nodestate.Updating, "2"), row("winworker-x7k2p", nodestate.Updated, "2")}})
	look(time.Second, fleet.Fleet{Conditions: refused, Nodes: []fleet.Row{row("win-a", nodestate.Updated, "2"), failed, row("winworker-x7k2p", nodestate.Updated, "2")}})
	look(time.Second, fleet.Fleet{Conditions: refused, Nodes: []fleet.Row{row("win-a", nodestate.Updated, "2"), failed, row("winworker-x7k2p", nodestate.Updated, "2")}})
	look(6*time.Second, fleet.Fleet{Conditions: accepted, Nodes: []fleet.Row{row("win-a", nodestate.Updated, "2"), row("win-b", nodestate.Updated, "2")}})
	// A second change is timed anew.
	look(time.Minute, fleet.Fleet{Conditions: accepted, Nodes: []fleet.Row{row("win-a", nodestate.Updated, "2"), row("win-b", nodestate.Updated, "2")}})
	look(time.Second, fleet.Fleet{Conditions: accepted, Nodes: []fleet.Row{row("win-a", nodestate.Stale, "3"), row("win-b", nodestate.Updated, "2")}})
	look(time.Second, fleet.Fleet{Conditions: append(waits, accepted...), Nodes: []fleet.Row{row("win-a", nodestate.Updated, "3"), row("win-b", nodestate.Updated, "2")}})
	look(time.Second, fleet.Fleet{Conditions: accepted, Nodes: []fleet.Row{row("win-a", nodestate.Updated, "3"), row("win-b", nodestate.Updated, "2")}})
	// A node joins. What it reports while it is not published changes nothing here.
	joins := row("win-c", nodestate.Joining, "")
	joins.Desired = ""
	look(time.Second, fleet.Fleet{Conditions: accepted, Nodes: []fleet.Row{joins, row("win-a", nodestate.Updated, "3"), row("win-b", nodestate.Updated, "2")}})
	joins.Reason, joins.Message, joins.Fix = "Unpublished", "no bundle is published for this node", "wait"
	look(time.Second, fleet.Fleet{Conditions: accepted, Nodes: []fleet.Row{joins, row("win-a", nodestate.Updated, "3"), row("win-b", nodestate.Updated, "2")}})
	look(time.Second, fleet.Fleet{Conditions: accepted, Nodes: []fleet.Row{row("win-c", nodestate.Updated, "2"), row("win-a", nodestate.Updated, "3"), row("win-b", nodestate.Updated, "2")}})
	want := `12:00:01  win-a            Updated -> Stale        d4735e3a265e
12:00:01  win-b            Updated -> Updating     d4735e3a265e
12:00:01  winworker-x7k2p  Stale -> Updated        d4735e3a265e  after 1s
12:00:03  InputsAccepted has been False for 3s (SettingsInvalid): no
12:00:03  win-a            Stale -> Updated        d4735e3a265e  after 3s
12:00:03  win-b            Updating -> Degraded    d4735e3a265e  kubelet does not become healthy; fix: correct the settings
12:00:10  InputsAccepted has been True for 10s (Accepted): yes
12:00:10  win-b            Degraded -> Updated     d4735e3a265e  after 10s
12:00:10  winworker-x7k2p  gone
12:00:10  all 2 nodes are updated, 10s after the first change
12:01:11  win-a  Updated -> Stale        4e07408562be
12:01:12  win-a  Stale -> Updated        4e07408562be  after 2s
12:01:13  all 2 nodes are updated, 3s after the first change
12:01:14  win-c  Joining                 -
12:01:16  win-c  Joining -> Updated      d4735e3a265e  after 1s
12:01:16  all 3 nodes are updated, 3s after the first change
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestWatchPrintsTheRollout prints its line when it changes, and that of the condition never twice.
func TestWatchPrintsTheRollout(t *testing.T) {
	clock := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	at := func(message string, takes int64) fleet.Fleet {
		f := fleet.Fleet{Nodes: []fleet.Row{row("win-a", nodestate.Updated, "1")}, Rollout: fleet.Rollout{TakesSeconds: takes, Nodes: []plan.Status{{Node: "win-a"}}}}
		f.Rollout.Message = message
		f.Conditions = []metav1.Condition{{Type: status.RolledOut, Status: metav1.ConditionFalse, Message: message}}
		return f
	}
	looks := []fleet.Fleet{at("0 of 1 node updated, 1 updating", 90), at("0 of 1 node updated, 1 updating", 80), at("1 of 1 node updated", 0)}
	for format, want := range map[cli.Format]string{
		cli.Text: "12:00:01  rollout: 0 of 1 node updated, 1 updating; about 90s left\n12:00:03  rollout: 1 of 1 node updated\n",
		cli.JSON: `"message":"0 of 1 node updated, 1 updating"`,
	} {
		var out bytes.Buffer
		now := clock
		f, w := statusFlags{format: format}, newWatched(at("1 of 1 node updated", 0), clock)
		for _, look := range looks {
			now = now.Add(time.Second)
			if err := f.printMoves(app{stdout: &out, now: func() time.Time { return now }}, w, look); err != nil {
				t.Fatal(err)
			}
		}
		if got := out.String(); format == cli.Text && got != want || !strings.Contains(got, want) || strings.Count(got, "\n") != 2 {
			t.Errorf("%s: got\n%s", format, got)
		}
	}
}
