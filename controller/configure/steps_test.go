package configure

import (
	"strings"
	"testing"
	"time"

	"wmco/applier/remote"
	"wmco/bundle/nodestate"
	"wmco/controller/status"
)

// TestAHostThatJoinsSaysItsStep while it lasts.
func TestAHostThatJoinsSaysItsStep(t *testing.T) {
	var u Unjoined
	tells := 0
	u.OnStep(func() { tells++ })
	u.OnChange(func() {})
	listed := []Listed{{Name: "win-1"}}
	shows := func(name string, want status.Host, wantTells int) {
		t.Helper()
		if tells != wantTells {
			t.Errorf("%s: told %d times, want %d", name, tells, wantTells)
		}
		want.Name = "win-1"
		if got := u.StatusHosts(listed); len(got) != 1 || got[0].State != want.State || got[0].Reason != want.Reason || got[0].Message != want.Message || got[0].Fix != want.Fix {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	joining := func(text string) status.Host {
		return status.Host{State: nodestate.Joining, Reason: reasonJoining, Message: text}
	}
	connecting := remote.Step{Text: "connecting", Connects: true}
	u.NoteStep("win-1", connecting)
	shows("at first", joining("connecting"), 1)
	u.NoteStep("win-1", connecting)
	shows("still", joining("connecting"), 1)
	u.NoteStep("win-1", remote.Step{Text: "copying the node program: 1 of 28 MiB"})
	u.NoteStep("win-1", remote.Step{Text: "copying the node program: 2 of 28 MiB"})
	shows("both are told once", joining("copying the node program: 2 of 28 MiB"), 2)
	u.EndStep("win-1")
	waits := Progress{State: StateJoining, Reason: ReasonRegistering, Message: "waiting for the Node"}
	u.RecordProgress("win-1", waits)
	shows("nothing is done with it", joining("waiting for the Node"), 3)
	// It is asked again and again: nothing changes for people.
	for range 10 {
		u.NoteStep("win-1", connecting)
		shows("again", joining("waiting for the Node"), 3)
		u.EndStep("win-1")
		u.RecordProgress("win-1", waits)
		shows("after it", joining("waiting for the Node"), 3)
	}
	u.RecordProgress("win-1", Progress{State: StateFailed, Reason: ReasonRolledBack, Message: "the host was rolled back", Fix: "fix it"})
	failed := status.Host{State: nodestate.Degraded, Reason: ReasonRolledBack, Message: "the host was rolled back", Fix: "fix it"}
	u.NoteStep("win-1", connecting)
	shows("it has failed", failed, 3)
	u.NoteStep("win-1", remote.Step{Text: "applying"})
	failed.Message += "; it is retried: applying"
	shows("it is retried", failed, 4)
	u.EndStep("win-1")
	u.RecordProgress("win-1", Progress{State: StateGone})
	u.Elapsed = func() time.Duration { return 0 }
	u.RecordProgress("win-1", Progress{State: StateFailed, Reason: ReasonUnreachable, Message: "no answer", Fix: "look at it"})
	shows("a machine that boots", status.Host{State: nodestate.Joining, Reason: ReasonUnreachable, Message: "no answer", Fix: "look at it"}, 5)
	u.NoteStep("win-1", remote.Step{Text: "copying executables: 3 of 80 MiB"})
	shows("it answers", joining("copying executables: 3 of 80 MiB"), 6)
}

// TestAStepOfALiarIsBounded.
func TestAStepOfALiarIsBounded(t *testing.T) {
	var u Unjoined
	u.NoteStep("win-1", remote.Step{Text: "rolling back: \x1b[2Jhttps://me:secret@example.com\n" + strings.Repeat("x", 1<<20)})
	got := u.StatusHosts([]Listed{{Name: "win-1"}})[0].Message
	if len(got) > maxStep || strings.ContainsAny(got, "\x1b\n") || strings.Contains(got, "secret") || !strings.HasPrefix(got, "rolling back: ") {
		t.Errorf("%q", got)
	}
}
