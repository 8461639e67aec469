package applier_test

import (
	"errors"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

// beingRemoved is a machine whose agent has begun to remove everything.
func beingRemoved(t *testing.T) *machine {
	t.Helper()
	m := withFirstAgent(t)
	m.Place(`C:\Windows\explorer.exe`, bundle.AccessUsers, "of Windows")
	if err := m.agent().BeginRemoval(t.Context(), applier.Removal{Node: "uid-a", Access: []byte("a kubeconfig"), LogDir: `C:\var\log\wicd`}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if s := m.Snapshot().Services[bundle.RemovalService]; s.Status != plan.ServiceRunning || s.Start != bundle.StartAuto {
		t.Fatalf("the service of the removal is %+v", s)
	}
	return m
}

// isOver checks that no removal is under way.
func (m *machine) isOver(t *testing.T) {
	t.Helper()
	snap := m.Snapshot()
	if s := snap.Services[bundle.RemovalService]; s.Name != "" {
		t.Errorf("the service of the removal is %+v", s)
	}
	for path := range snap.Files {
		if bundle.Dir(path) == `C:\Windows` && path != `C:\Windows\explorer.exe` {
			t.Errorf("%s is left", path)
		}
	}
	if node, err := m.engine().PendingRemoval(t.Context()); node != "" || err != nil {
		t.Errorf("the removal of %q is under way, %v", node, err)
	}
	if _, err := m.engine().ContinueRemoval(t.Context(), time.Minute); !errors.Is(err, applier.ErrNoRemoval) {
		t.Errorf("it is continued: %v", err)
	}
}

// TestABundleEndsARemoval, at whichever step that is interrupted: what the host is given is not removed afterwards.
func TestABundleEndsARemoval(t *testing.T) {
	t.Parallel()
	want := withFirstAgent(t)
	want.Place(`C:\Windows\explorer.exe`, bundle.AccessUsers, "of Windows")
	want.mustApply(t, withAgent("2"))
	start := beingRemoved(t)
	if _, err := start.engine().ContinueRemoval(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	for step := 0; ; step++ {
		m := start.copy()
		cut := m.applyCut(t, withAgent("2"), step)
		m.Revive()
		m.mustApply(t, withAgent("2"))
		m.isOver(t)
		if diff := differs(want.place(), m.place()); diff != "" {
			t.Fatalf("step %d (-want +got):\n%s", step, diff)
		}
		if !cut {
			break
		}
	}
}

// TestACleanupEndsARemoval of the node agent, and does what that had not done yet.
func TestACleanupEndsARemoval(t *testing.T) {
	t.Parallel()
	m := beingRemoved(t)
	if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil {
		t.Fatal(err)
	}
	m.isOver(t)
	if s := m.Snapshot().Services[bundle.AgentService]; s.Name != "" {
		t.Errorf("the agent is %+v", s)
	}
}

// TestWhoBeginsNoRemoval: a program that is no service would not outlive a boot, and without a kubeconfig the end is not reported.
func TestWhoBeginsNoRemoval(t *testing.T) {
	t.Parallel()
	m := withFirstAgent(t)
	m.Place(`C:\Windows\explorer.exe`, bundle.AccessUsers, "of Windows")
	if err := m.engine().BeginRemoval(t.Context(), applier.Removal{Node: "uid-a", Access: []byte("a kubeconfig")}, time.Minute); !errors.Is(err, applier.ErrNotService) {
		t.Errorf("not a service: %v", err)
	}
	if err := m.agent().BeginRemoval(t.Context(), applier.Removal{Node: "uid-a"}, time.Minute); !errors.Is(err, applier.ErrNoRemoval) {
		t.Errorf("without a kubeconfig: %v", err)
	}
	if s := m.Snapshot().Services[bundle.RemovalService]; s.Name != "" {
		t.Errorf("the service of the removal is %+v", s)
	}
}

// TestARetiredServiceIsGoneWhenItEnds, and its program when the host boots.
func TestARetiredServiceIsGoneWhenItEnds(t *testing.T) {
	t.Parallel()
	m := beingRemoved(t)
	if err := m.engine().RetireRemoval(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.StartService(t.Context(), bundle.RemovalService); err == nil {
		t.Error("it is started again")
	}
	m.boot()
	if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil {
		t.Fatal(err)
	}
	m.isOver(t)
	if err := m.engine().RetireRemoval(t.Context()); err != nil {
		t.Errorf("twice: %v", err)
	}
}
