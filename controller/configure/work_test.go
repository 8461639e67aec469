package configure

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/remote"
	"wmco/bundle/nodestate"
	"wmco/controller/status"
)

// TestWorkOnTheHostOfANodeSaysItsStep while it lasts, and nothing afterwards.
func TestWorkOnTheHostOfANodeSaysItsStep(t *testing.T) {
	var u Unjoined
	tells := 0
	u.OnStep(func() { tells++ })
	shows := func(want string, wantTells int) {
		t.Helper()
		u.StatusHosts(nil) // from here on, something new is told again
		got, ok := u.NodeWork("win-1")
		if ok != (want != "") || got.Message != want || tells != wantTells {
			t.Errorf("%q, told %d times, want %q, %d", got.Message, tells, want, wantTells)
		}
		if ok && (got.State != nodestate.Updating || got.Reason != ReasonCopying || got.Node != "win-1") {
			t.Errorf("%+v", got)
		}
	}
	shows("", 0)
	ctx, end := u.BeginWork(t.Context(), "win-1", CopyExecutables())
	shows("copying the executables of the newest bundle to the host", 1)
	remote.NoteStep(ctx, remote.Step{Text: "copying executables: 3 of 80 MiB"})
	remote.NoteStep(ctx, remote.Step{Text: "copying executables: 4 of 80 MiB"})
	shows("copying the executables of the newest bundle to the host: copying executables: 4 of 80 MiB", 2)
	if _, ok := u.NodeWork("win-2"); ok {
		t.Error("something is done with another node")
	}
	end()
	shows("", 3)
	// The next work begins without the last step of this one.
	_, end = u.BeginWork(t.Context(), "win-1", CopyExecutables())
	shows("copying the executables of the newest bundle to the host", 4)
	end()
}

// TestARemovalSaysItsStep: in place of how far it was before, or after the problem.
func TestARemovalSaysItsStep(t *testing.T) {
	var u Unjoined
	shows := func(want status.Host) {
		t.Helper()
		want.Name, want.Node, want.Address = "win-1", "win-1", "192.0.2.1"
		if diff := cmp.Diff([]status.Host{want}, u.StatusHosts(nil)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	u.NoteRemoval("win-1", "192.0.2.1", Progress{State: StateWaiting, Reason: "Cordoned", Message: "the node is cordoned"})
	cordoned := status.Host{State: nodestate.Removing, Reason: "Cordoned", Message: "the node is cordoned"}
	shows(cordoned)
	ctx, end := u.BeginWork(t.Context(), "win-1", CleanUpHost())
	remote.NoteStep(ctx, remote.Step{Text: "removing: 7 of 40"})
	cordoned.Message = "the host is cleaned up: removing: 7 of 40"
	shows(cordoned)
	u.NoteRemoval("win-1", "192.0.2.1", Progress{State: StateFailed, Reason: ReasonUnreachable, Message: "no answer", Fix: "start the host"})
	failed := status.Host{State: nodestate.Degraded, Reason: ReasonUnreachable, Message: "no answer; it is retried: the host is cleaned up: removing: 7 of 40", Fix: "start the host"}
	shows(failed)
	end()
	failed.Message = "no answer"
	shows(failed)
}
