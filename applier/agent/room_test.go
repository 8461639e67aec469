package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/bundle/published"
	"wmco/internal/hostsim/simulation"
)

// passes lets the agent act twice a minute, as Agent.timeUntilDue has it.
func (w *world) passes(d time.Duration) {
	w.t.Helper()
	for end := w.clock.SinceBoot() + d; w.clock.SinceBoot() < end; {
		w.clock.Pass(defaultHousekeep)
		w.turn()
	}
}

// full lets every write into a folder fail although the drive reports room.
func (w *world) full(folders ...string) {
	w.t.Helper()
	if err := w.host.Edit(w.t.Context(), func(s *simulation.State) { s.Script.Full = folders }); err != nil {
		w.t.Fatal(err)
	}
}

// TestABundleWaitsForRoom: nothing is begun that the disk has no room for, and it is begun within a minute of room.
func TestABundleWaitsForRoom(t *testing.T) {
	for _, impact := range []bundle.Impact{bundle.ImpactRestart, bundle.ImpactNone} { // a node is not drained for what it has no room for
		w := newWorld(t)
		w.publish(bundle.ImpactRestart)
		w.turn()
		before := w.file(kubeletConf)
		w.change(kubeletConf, strings.Repeat("# changed\n", 1<<18))
		d := w.publish(impact)
		w.leaveRoom(1 << 20)
		w.host.ClearLog()
		got := w.turn()
		if !got.WaitsForRoom() || got.Fault != published.FaultDisk || got.Desired != d.Bundle || got.Cause != "" {
			t.Fatalf("%+v", got)
		}
		if want := "waits for room on drive C: needs 35 MiB, has 1 MiB"; got.Message != want {
			t.Errorf("%q, want %q", got.Message, want)
		}
		reports := len(w.cluster.reports)
		w.passes(8 * time.Minute)
		w.leaveRoom(3 << 20) // more than the plan writes, and less than it waits for
		w.passes(8 * time.Minute)
		if got := w.lastReport(); !got.WaitsForRoom() || !strings.HasSuffix(got.Message, "has 3 MiB") {
			t.Errorf("with more room: %+v", got)
		}
		if n := len(w.cluster.reports) - reports; n > 3 {
			t.Errorf("%d reports in 16 minutes", n)
		}
		if len(w.host.Log()) > 0 || w.file(kubeletConf) != before {
			t.Errorf("for want of room: %v", w.host.Log())
		}
		w.leaveRoom(40 << 20)
		w.passes(time.Minute)
		switch got := w.lastReport(); {
		case impact == bundle.ImpactNone && (got.State != published.StateNeedsPermission || got.Fault != ""):
			t.Errorf("with room, without permission: %+v", got)
		case impact == bundle.ImpactRestart && (got.State != published.StateApplied || got.Fault != "" || w.file(kubeletConf) == before):
			t.Errorf("with room: %+v", got)
		}
	}
}

// TestAFullDiskIsNoRollbackForGood: a change that was rolled back because the disk became full is retried, with growing pauses, and also by
// another process.
func TestAFullDiskIsNoRollbackForGood(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		w := newWorld(t)
		w.publish(bundle.ImpactRestart)
		w.turn()
		before := w.file(kubeletConf)
		w.change(kubeletConf, "kind: KubeletConfiguration\nmaxPods: 1\n")
		d := w.publish(bundle.ImpactRestart)
		w.full(`C:\k`)
		w.host.ClearLog()
		got := w.turn()
		if !got.WaitsForRoom() || got.Desired != d.Bundle || !strings.Contains(got.Message, "rolled back: ") || w.file(kubeletConf) != before {
			t.Fatalf("%+v, %q", got, w.file(kubeletConf))
		}
		if got.BlamesInput() || !strings.Contains(got.Fix("win-a"), "free space on drive C:") {
			t.Errorf("fix: %s", got.Fix("win-a"))
		}
		w.passes(2 * time.Minute)
		if n := w.starts("kubelet"); n > 2 {
			t.Errorf("%d starts of the kubelet in two minutes", n)
		}
		if restarts {
			w.restart()
		}
		w.passes(time.Hour)
		if n := w.starts("kubelet"); n > 20 {
			t.Errorf("%d starts of the kubelet in an hour", n)
		}
		w.full()
		w.passes(lastRetry + time.Minute)
		if got := w.lastReport(); got.State != published.StateApplied || w.file(kubeletConf) == before {
			t.Errorf("with room: %+v", got)
		}
	}
}

// TestAnInterruptedRollbackForWantOfRoom is ended by another process, which learns from the report that the bundle is to be retried.
func TestAnInterruptedRollbackForWantOfRoom(t *testing.T) {
	for cut := 0; ; cut++ {
		w := newWorld(t)
		w.publish(bundle.ImpactRestart)
		w.turn()
		w.change(kubeletConf, "kind: KubeletConfiguration\nmaxPods: 1\n")
		d := w.publish(bundle.ImpactRestart)
		w.full(`C:\k`)
		w.turn()
		w.clock.Pass(lastRetry)
		w.setNode(w.cluster.node, w.changed)
		w.cluster.node.Report = w.cluster.reports[len(w.cluster.reports)-1].Text
		reported := w.cluster.node.Report
		w.host.CutAt(cut)
		_ = w.runDueWork(t.Context())
		if !w.host.Cut() {
			if cut < 10 {
				t.Errorf("only %d steps", cut)
			}
			return
		}
		w.cluster.node.Report = reported
		w.host.Revive()
		w.restart()
		w.turn()
		w.full()
		w.passes(2 * lastRetry)
		if got := w.lastReport(); got.State != published.StateApplied || got.Applied != d.Bundle {
			t.Fatalf("killed at step %d: %s %s", cut, got.State, got.Message)
		}
	}
}

func TestFaultsOfErrors(t *testing.T) {
	full := &applier.FileError{Path: `C:\k\a`, Reason: applier.FileDiskFull, Err: errors.New("Windows error 112")}
	locked := &applier.FileError{Path: `C:\k\a`, Reason: applier.FileLocked, Err: errors.New("Windows error 32")}
	service := &applier.ServiceError{Name: "kubelet", Doing: "starting", Err: errors.New("it has ended")}
	for _, tt := range []struct {
		name string
		err  error
		want published.Fault
	}{
		{"a full disk", full, published.FaultDisk},
		{"a full disk behind another error", &applier.RolledBackError{Err: errors.Join(locked, full)}, published.FaultDisk},
		{"a rollback that has no room", &applier.PartialError{Err: fmt.Errorf("%w; rolling back: %w", service, full)}, published.FaultDisk},
		{"a locked file", &applier.RolledBackError{Err: fmt.Errorf("write file: %w", locked)}, published.FaultHost},
		{"another run", &applier.LockedError{Owner: "wmco"}, published.FaultHost},
		{"a service", &applier.RolledBackError{Err: service}, published.FaultInput},
		{"a Node that is not Ready", &applier.RolledBackError{Err: errNotReady}, published.FaultInput},
		{"an API server that is away since", &applier.RolledBackError{Err: fmt.Errorf("%w: %w", errAway, errors.New("refused"))}, published.FaultAPI},
		{"a Secret that cannot be fetched", partError("windows-layer-0", errors.New("connection refused")), published.FaultAPI},
		{"a Secret that does not exist", partError("windows-layer-0", fmt.Errorf("%w: it does not exist", ErrNotPublished)), published.FaultLayer},
		{"a layer that is cut", openError(published.Layer{Parts: 1}, "operator", fmt.Errorf("%w: no end", archive.ErrMalformed)), published.FaultLayer},
		{"a layer of a newer program", openError(published.Layer{Parts: 1}, "operator", &bundle.SchemaError{}), published.FaultAgent},
		{"a bundle whose layers do not fit", fmt.Errorf("reading the bundle: %w", bundle.ErrInconsistent), published.FaultInput},
		{"anything else", errors.New("no luck"), ""},
	} {
		if got := faultOf(tt.err); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestAFullDiskThatCannotNoteWhatIsAccepted: without room for its own record of the published state, the agent still reports what it waits with.
func TestAFullDiskThatCannotNoteWhatIsAccepted(t *testing.T) {
	s := withKeys(t, signingKey(1))
	s.change = nil
	s.world.change(mirrors, "changed\n")
	s.publishSigned(bundle.ImpactNone)
	d, err := published.DecodeDesired(s.cluster.node.Desired)
	if err != nil {
		t.Fatal(err)
	}
	s.leaveRoom(1)
	if got := s.turn(); !got.WaitsForRoom() || got.Desired != d.Bundle || !strings.Contains(got.Message, "needs 32 MiB, has 0 MiB") {
		t.Fatalf("%+v", got)
	}
	s.passes(5 * time.Minute)
	s.leaveRoom(0)
	s.passes(time.Minute)
	if got := s.lastReport(); got.State != published.StateApplied || got.Applied != d.Bundle {
		t.Errorf("with room: %+v", got)
	}
}

// TestAResumedRunThatHasNoRoom was begun while there was room, and is retried as a whole.
func TestAResumedRunThatHasNoRoom(t *testing.T) {
	for cut := 0; ; cut++ {
		w := newWorld(t)
		w.publish(bundle.ImpactRestart)
		w.turn()
		w.change(kubeletConf, "kind: KubeletConfiguration\nmaxPods: 1\n")
		d := w.publish(bundle.ImpactRestart)
		w.setNode(w.cluster.node, w.changed)
		w.host.CutAt(cut)
		_ = w.runDueWork(t.Context())
		if !w.host.Cut() {
			if cut < 10 {
				t.Errorf("only %d steps", cut)
			}
			return
		}
		w.host.Revive()
		w.full(`C:\k`)
		w.restart()
		w.turn()
		w.full()
		w.passes(2 * lastRetry)
		if got := w.lastReport(); got.State != published.StateApplied || got.Applied != d.Bundle {
			t.Fatalf("killed at step %d: %s %s", cut, got.State, got.Message)
		}
	}
}

// TestARollbackThatHasNoRoom: the disk becomes full when a bundle that does not work is rolled back for the first time. That is reported with its
// fix, the rollback ends when there is room, and the bundle counts as rolled back for its own reason then: it is not retried.
func TestARollbackThatHasNoRoom(t *testing.T) {
	for _, tt := range []struct {
		name     string
		folders  []string
		restarts bool
		starts   int
	}{
		{"the programs have no room", []string{`C:\k`}, false, 1},
		{"the programs have no room, and the agent is started again", []string{`C:\k`}, true, 1},
		// That it is rolled back could not be noted: the run is resumed, and rolled back again.
		{"nothing has room", []string{`C:`}, false, 2},
		{"nothing has room, and the agent is started again", []string{`C:`}, true, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.publish(bundle.ImpactRestart)
			w.turn()
			before := w.file(kubeletConf)
			if err := w.host.Edit(t.Context(), func(s *simulation.State) {
				s.Script.Services = map[string]simulation.Behaviour{"kubelet": {Needs: []simulation.Condition{{File: kubeletConf, Lacks: "bad"}}}}
			}); err != nil {
				t.Fatal(err)
			}
			w.change(kubeletConf, "kind: KubeletConfiguration\nmaxPods: bad\n")
			d := w.publish(bundle.ImpactRestart)
			emit := w.Engine.Emit
			w.Engine.Emit = func(e protocol.Event) {
				if e.Event == protocol.EventRollback {
					w.full(tt.folders...)
				}
				emit(e)
			}
			got := w.turn()
			w.Engine.Emit = emit
			t.Logf("%s: %s (fix: %s)", got.State, got.Message, got.Fix("win-a"))
			if !got.WaitsForRoom() || got.Desired != d.Bundle || !strings.Contains(got.Message, "rolling back: ") || !strings.Contains(got.Fix("win-a"), "free space on drive C:") {
				t.Errorf("without room: %+v", got)
			}
			if tt.restarts {
				w.restart()
			}
			w.passes(20 * time.Minute)
			if got := w.lastReport(); !got.WaitsForRoom() {
				t.Errorf("after 20 minutes without room: %s: %s", got.State, got.Message)
			}
			w.full()
			w.host.ClearLog()
			w.passes(lastRetry + time.Minute)
			got = w.lastReport()
			t.Logf("%s: %s (fix: %s)", got.State, got.Message, got.Fix("win-a"))
			if got.State != published.StateRolledBack || w.file(kubeletConf) != before || !strings.Contains(got.Message, "kubelet") {
				t.Errorf("with room: %+v", got)
			}
			w.passes(time.Hour)
			if n := w.starts("kubelet"); n != tt.starts {
				t.Errorf("with room, the kubelet was started %d times, want %d", n, tt.starts)
			}
		})
	}
}
