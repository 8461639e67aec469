package agent

import (
	"errors"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/simulation"
)

// scanned lets another program have a file open when the run that begins next writes it, and for that long.
func (w *world) scanned(path string, d time.Duration) {
	end := w.clock.SinceBoot() + d
	w.host.Faults = hostsim.Faults{Before: func(op simulation.Operation) error {
		if op.Verb != simulation.VerbWrite || !strings.EqualFold(op.Target, path) || w.clock.SinceBoot() >= end {
			return nil
		}
		return &applier.FileError{Path: path, Reason: applier.FileLocked, Err: simulation.ErrSharingViolation}
	}}
}

// TestAFaultOfTheHostIsTriedOnceMore: it is no verdict about the bundle. What lasts is rolled back for good by the second try.
func TestAFaultOfTheHostIsTriedOnceMore(t *testing.T) {
	for _, tt := range []struct {
		name string
		held time.Duration
		then func(*world)
		want published.State
	}{
		{"a scanner has a file open for a minute", time.Minute, nil, published.StateApplied},
		{"another program has it open for good", 24 * time.Hour, nil, published.StateRolledBack},
		{"the permission is given again in between", 24 * time.Hour, func(w *world) { w.publish(bundle.ImpactDrain) }, published.StateRolledBack},
		{"a person asks at once for another try", time.Second, func(w *world) { w.cluster.node.Retry = "1" }, published.StateApplied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.publish(bundle.ImpactRestart)
			w.turn()
			before := w.file(kubeletConf)
			w.change(kubeletConf, "kind: KubeletConfiguration\nmaxPods: 10\n")
			d := w.publish(bundle.ImpactRestart)
			w.scanned(kubeletConf, tt.held)
			w.host.ClearLog()
			got := w.turn()
			if got.State != published.StateFailed || !got.Heals() || !got.BlamesHost() || got.Desired != d.Bundle || !strings.Contains(got.Message, "tried once more") || w.file(kubeletConf) != before {
				t.Fatalf("after the first rollback: %+v", got)
			}
			if tt.then != nil {
				w.clock.Pass(2 * time.Second)
				tt.then(w)
				w.turn()
			} else {
				w.passes(2 * time.Minute)
				if n := w.starts("kubelet"); n != 1 {
					t.Errorf("it was retried in the pause: %d starts", n)
				}
			}
			w.passes(time.Hour)
			got = w.lastReport()
			if got.State != tt.want || got.State == published.StateRolledBack && (got.Fault != published.FaultHost || w.file(kubeletConf) != before) {
				t.Errorf("%s: %s", got.State, got.Message)
			}
			w.publish(bundle.ImpactNone) // the turn has ended
			if again := w.turn(); again.State != got.State || again.Fault != got.Fault || again.Cause != got.Cause || again.Message != got.Message {
				t.Errorf("with another permission: %+v, before %+v", again, got)
			}
			if n := w.starts("kubelet"); n != 2 { // after the first rollback, and after the second try
				t.Errorf("the kubelet was started %d times", n)
			}
		})
	}
}

// TestAResumedRunThatAFaultOfTheHostRollsBack is tried once more too, after the same pause.
func TestAResumedRunThatAFaultOfTheHostRollsBack(t *testing.T) {
	w := newWorld(t)
	w.publish(bundle.ImpactRestart)
	w.turn()
	w.change(kubeletConf, "kind: KubeletConfiguration\nmaxPods: 10\n")
	w.publish(bundle.ImpactRestart)
	emit := w.Engine.Emit
	w.Engine.Emit = func(e protocol.Event) {
		if e.Event == protocol.EventAction && e.Action.Verb == protocol.VerbStop {
			w.host.CutAt(0)
			w.cluster.away = errors.New("the process was killed")
		}
		emit(e)
	}
	w.turn()
	if !w.host.Cut() {
		t.Fatal("the agent was not killed")
	}
	w.host.Revive()
	w.cluster.away = nil
	w.restart()
	w.scanned(kubeletConf, time.Minute)
	if got := w.turn(); got.State != published.StateFailed || !got.BlamesHost() || !strings.Contains(got.Message, "tried once more") {
		t.Errorf("after the first rollback: %+v", got)
	}
	w.passes(10 * time.Minute)
	if got := w.lastReport(); got.State != published.StateApplied {
		t.Errorf("%s: %s", got.State, got.Message)
	}
}
