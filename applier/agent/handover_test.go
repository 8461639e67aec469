package agent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"wmco/applier"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim/bundletest"
)

const agentLog = `C:\var\log\wicd\wicd.log`

// withAgent makes the bundle have a node agent of this version, whose program is on the host.
func (w *world) withAgent(version string) {
	path := `C:\k\agent\wmco-node-` + version + `.exe`
	w.bundle = bundletest.New().Changed(func(n *bundletest.Node) {
		n.Programs[path] = "node agent " + version
		s := bundletest.Service(bundle.AgentService, []string{path, "run"}, nil, path)
		s.Logs = []bundle.Log{{Path: agentLog, Rotation: bundle.RotationAgent, SizeBytes: 1 << 20}}
		n.Services = append(n.Services, s)
	})
	observed, err := w.engine().Observe(w.t.Context(), w.bundle.Manifest(w.t), w.archived(w.bundle, nil).Contents(), false)
	if err == nil {
		_, err = w.engine().Stage(w.t.Context(), w.bundle.Manifest(w.t), w.archived(w.bundle, observed.Missing), 0)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// exchange ends the process of the agent and starts that of its service.
func (w *world) exchange() {
	w.t.Helper()
	if err := errors.Join(w.host.StopService(w.t.Context(), bundle.AgentService), w.host.StartService(w.t.Context(), bundle.AgentService)); err != nil {
		w.t.Fatal(err)
	}
	w.restart()
	w.recallUndone(w.t.Context())
}

// secondAgent is a world in which the first agent has started the second one.
func secondAgent(t *testing.T) (*world, published.Desired) {
	t.Helper()
	w := newWorld(t)
	w.withAgent("1")
	w.publish(bundle.ImpactRestart)
	w.setNode(w.cluster.node, w.changed)
	if err := w.runDueWork(t.Context()); !errors.Is(err, ErrRestart) { // its service is new
		t.Fatal(err)
	}
	w.restart()
	if r := w.turn(); r.State != published.StateApplied {
		t.Fatalf("%+v", r)
	}
	w.withAgent("2")
	d := w.publish(bundle.ImpactRestart)
	w.setNode(w.cluster.node, w.changed)
	if err := w.runDueWork(t.Context()); !errors.Is(err, ErrRestart) {
		t.Fatalf("%v, %+v", err, w.lastReport())
	}
	if r := w.lastReport(); r.State != published.StateApplying || r.Desired != d.Bundle {
		t.Errorf("the first agent reports %+v", r)
	}
	w.exchange()
	return w, d
}

func TestANewAgentReportsTheBundleThatItCameWith(t *testing.T) {
	w, d := secondAgent(t)
	if r := w.turn(); r.State != published.StateApplied || r.Applied != d.Bundle {
		t.Errorf("%+v", r)
	}
	if _, there := w.host.Contents(`C:\ProgramData\wmco\guard.exe`); there {
		t.Error("the guard stays")
	}
}

// A bundle that the guard rolled back is not retried unless a person asks, and the agent from before reports it.
func TestAnAgentThatIsRestoredReportsTheRollback(t *testing.T) {
	synctest.Test(t, checkAnAgentThatIsRestoredReportsTheRollback)
}

func checkAnAgentThatIsRestoredReportsTheRollback(t *testing.T) {
	t.Helper()
	w, d := secondAgent(t)
	w.host.Plant(agentLog, "panic: x\n")
	var back *applier.RolledBackError
	if _, err := w.engine().GuardHandover(t.Context(), bundle.AgentService); !errors.As(err, &back) {
		t.Fatal(err)
	}
	w.restart()
	w.recallUndone(t.Context())
	for range 2 {
		if r := w.turn(); r.State != published.StateRolledBack || r.Desired != d.Bundle || !strings.Contains(r.Message, "did not confirm") || strings.Join(r.Log.Lines, "") != "panic: x" {
			t.Fatalf("%+v", r)
		}
		w.cluster.node.Report = w.cluster.reports[len(w.cluster.reports)-1].Text
		w.restart()
		w.recallUndone(t.Context())
	}
	said := 0
	for _, e := range w.cluster.events {
		if e.Reason == EventRolledBack {
			said++
		}
	}
	if said == 0 {
		t.Error("no event says so")
	}
	w.cluster.node.Retry = "again"
	w.setNode(w.cluster.node, w.changed)
	if err := w.runDueWork(t.Context()); !errors.Is(err, ErrRestart) {
		t.Fatalf("%v, %+v", err, w.lastReport())
	}
	w.exchange()
	if r := w.turn(); r.State != published.StateApplied || r.Applied != d.Bundle {
		t.Errorf("%+v", r)
	}
	if u, err := w.engine().UnreportedRollback(t.Context()); err != nil || u.Bundle != "" {
		t.Errorf("the record of the rollback stays: %+v, %v", u, err)
	}
}
