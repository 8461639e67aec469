package applier_test

import (
	"errors"
	"testing"
	"time"

	"wmco/applier"
	"wmco/internal/hostsim/simulation"
)

// TestDriftIsRepairedWhenThereIsRoom: the pause between two tries of other faults grows to an hour.
func TestDriftIsRepairedWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	e := m.engine()
	m.Discard(`C:\k\kubelet.conf`)
	m.edit(func(s *simulation.State) { s.Script.Full = []string{`C:\k`} })
	m.ClearLog()
	for range 30 {
		if _, err := e.Repair(t.Context(), applier.Options{}); !errors.Is(err, applier.ErrDiskFull) {
			t.Fatal(err)
		}
		m.clock.Pass(time.Minute)
	}
	if n := m.count(simulation.VerbStop, ""); n > 0 {
		t.Errorf("%d services were stopped", n)
	}
	m.edit(func(s *simulation.State) { s.Script.Full = nil })
	if o, err := e.Repair(t.Context(), applier.Options{}); err != nil || o.Written != 1 {
		t.Errorf("with room: %v, %+v", err, o)
	}
}

// TestARollbackForWantOfRoomIsNotRecorded: the program that its service restarts would report it as one that is not retried.
func TestARollbackForWantOfRoomIsNotRecorded(t *testing.T) {
	t.Parallel()
	for reason, recorded := range map[applier.FileReason]bool{applier.FileLocked: true, applier.FileDiskFull: false} {
		m := withFirstAgent(t)
		m.Faults.Before = func(op simulation.Operation) error {
			if op.Verb == simulation.VerbStart && op.Target == "kubelet" {
				m.Faults.Before = nil
				return &applier.FileError{Path: `C:\k\a`, Reason: reason, Err: errors.New("no")}
			}
			return nil
		}
		next := withAgent("1").Changed(func(n *node) {
			n.Files[`C:\k\kubelet.conf`] = "changed\n"
			n.Services[len(n.Services)-1].Description = "of another bundle"
		})
		e := m.agent()
		seen := m.observe(t, next)
		o, err := e.Apply(t.Context(), next.Manifest(t), reader(t, next, seen.Missing), confirming(nil))
		if back := (*applier.RolledBackError)(nil); !errors.As(err, &back) || !o.RestartSelf {
			t.Fatalf("%v, %+v", err, o)
		}
		if u, err := m.agent().UnreportedRollback(t.Context()); err != nil || (u.Bundle != "") != recorded {
			t.Errorf("%s: %+v, %v", reason, u, err)
		}
	}
}
