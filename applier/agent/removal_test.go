package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
	"wmco/bundle/published"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/simulation"
	"wmco/layout"
)

const agentProgram = `C:\k\agent\wmco-node-1.exe`

// withOwnService is a world whose agent runs as the service of its bundle, on a Node that has a UID.
func withOwnService(t *testing.T) *signing {
	t.Helper()
	w := newWorldWith(t, bundletest.New().Changed(func(n *bundletest.Node) {
		n.Programs[agentProgram] = "node agent"
		n.Services = append(n.Services, bundletest.Service(bundle.AgentService, []string{agentProgram, "run"}, nil, agentProgram))
	}))
	w.host.Place(`C:\Windows\explorer.exe`, bundle.AccessUsers, "of Windows")
	w.host.Place(bundle.UploadFolder+`\wmco-node-0123456789ab.exe`, bundle.AccessAdmins, "uploaded")
	w.cluster.node.UID = "uid-a"
	return w.withKeys(t, signingKey(1))
}

// end publishes, signed, that the node ends.
func (s *signing) end() {
	s.change = func(d *published.Desired) { *d = d.ToRemove(); d.NodeUID = "uid-a" }
	s.publishSigned(bundle.ImpactNone)
}

// remover is a process of the removal's service.
func (s *signing) remover() *Remover {
	e := s.engine()
	e.Self = ""
	return &Remover{Engine: e, Cluster: s.cluster, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

func (s *signing) service(name string) plan.ServiceStatus {
	return s.host.Snapshot().Services[name].Status
}

// TestWhatEndsNoNode: whatever is not signed for this very Node, and whatever a host without keys reads.
func TestWhatEndsNoNode(t *testing.T) {
	end := func(change func(*published.Desired)) func(*signing) {
		return func(s *signing) {
			s.end()
			before := s.change
			s.change = func(d *published.Desired) { before(d); change(d) }
			s.publishSigned(bundle.ImpactNone)
		}
	}
	for name, tt := range map[string]struct {
		publish func(*signing)
		why     string
	}{
		"not signed": {func(s *signing) {
			d := s.publish(bundle.ImpactReboot)
			d.Remove, d.NodeName, d.NodeUID = true, fakeNode, "uid-a"
			s.cluster.node.Desired, _ = d.Encode()
		}, "it is not signed"},
		"signed with another key":                 {func(s *signing) { s.keys = append(s.keys[:0:0], signingKey(9)); s.end() }, "by a key that is trusted"},
		"signed for an earlier Node of this name": {end(func(d *published.Desired) { d.NodeUID = "of-before" }), "signed for an earlier Node of this name"},
		"signed for a Node of any UID":            {end(func(d *published.Desired) { d.NodeUID = "" }), "it ends a node without its UID"},
		"signed for another node":                 {end(func(d *published.Desired) { d.NodeName = "win-b" }), "for node win-b"},
		"of an older sequence":                    {end(func(d *published.Desired) { d.Sequence = 1 }), "is older than"},
		"removed from what is signed": {func(s *signing) {
			s.cluster.node.Desired = strings.Replace(s.publishSigned(bundle.ImpactNone), `,"nodeName"`, `,"remove":true,"nodeName"`, 1)
		}, "by a key that is trusted"},
	} {
		t.Run(name, func(t *testing.T) {
			s := withOwnService(t)
			tt.publish(s)
			s.refused(t, tt.why)
			if s.service(bundle.RemovalService) != plan.ServiceAbsent || s.removal.node != "" {
				t.Error("the removal has begun")
			}
		})
	}
	t.Run("a host without keys", func(t *testing.T) {
		s := &signing{world: newWorld(t)}
		s.cluster.node.UID = "uid-a"
		d := s.publish(bundle.ImpactReboot)
		d.Remove, d.NodeName, d.NodeUID = true, fakeNode, "uid-a"
		s.cluster.node.Desired, _ = d.Encode()
		if got := s.turn(); got.State != published.StateApplied || s.service(bundle.RemovalService) != plan.ServiceAbsent {
			t.Errorf("%s: %s", got.State, got.Message)
		}
	})
}

// TestASignedRemovalBegins, also on a paused node. From then on the agent repairs nothing and reports how far it is.
func TestASignedRemovalBegins(t *testing.T) {
	s := withOwnService(t)
	if got := s.lastOrTurn(); !got.Has(published.FeatureRemove) {
		t.Fatalf("the features are %v", got.Features)
	}
	s.cluster.node.Paused = true
	s.end()
	got := s.turn()
	if got.Removal.Node != "uid-a" || got.Removal.Done || got.State != published.StateApplying {
		t.Fatalf("%+v, %s: %s", got.Removal, got.State, got.Message)
	}
	if s.service(bundle.RemovalService) != plan.ServiceRunning {
		t.Fatal("the service of the removal does not run")
	}
	access := s.host.Snapshot().Files[applier.RemovalAccess]
	if s.file(applier.RemovalAccess) != "a kubeconfig" || access.Access != bundle.AccessAdmins {
		t.Errorf("the kubeconfig %q is for %s", s.file(applier.RemovalAccess), access.Access)
	}
	s.host.Discard(kubeletConf)
	s.clock.Pass(time.Hour)
	s.turn()
	if s.file(kubeletConf) != "" {
		t.Error("the agent repairs what is removed")
	}
	if left := s.timeUntilDue(); left <= 0 {
		t.Errorf("it does not rest: %s", left)
	}
	// A service that has ended is started again.
	s.kill(bundle.RemovalService)
	s.turn()
	if s.service(bundle.RemovalService) != plan.ServiceRunning {
		t.Error("the service of the removal is not started again")
	}
	// So does another process of the agent, which has not read its Node yet.
	s.kill(bundle.RemovalService)
	s.cluster.away = errors.New("the API server is away")
	s.restart()
	s.recallRemoval(t.Context())
	s.setNode(Node{}, s.changed)
	if err := s.runDueWork(t.Context()); err != nil || s.file(kubeletConf) != "" || s.service(bundle.RemovalService) != plan.ServiceRunning {
		t.Errorf("after a restart: %v, kubelet.conf %q, %s", err, s.file(kubeletConf), s.service(bundle.RemovalService))
	}
}

// lastOrTurn returns a report.
func (s *signing) lastOrTurn() published.Report {
	s.reporter.heartbeat = 0
	return s.turn()
}

// kill ends the process of a service.
func (s *signing) kill(name string) {
	s.t.Helper()
	if err := s.host.Edit(s.t.Context(), func(state *simulation.State) {
		svc := state.Services[simulation.Key(name)]
		svc.Status, svc.Processes = plan.ServiceStopped, nil
		state.Services[simulation.Key(name)] = svc
	}); err != nil {
		s.t.Fatal(err)
	}
}

// TestARemovalThatCannotBeginIsReported, and retried.
func TestARemovalThatCannotBeginIsReported(t *testing.T) {
	s := withOwnService(t)
	s.host.Faults.Before = func(op simulation.Operation) error {
		if op.Verb == simulation.VerbPut {
			return errors.New("the service control manager refuses")
		}
		return nil
	}
	s.end()
	got := s.turn()
	if got.State != published.StateFailed || !strings.Contains(got.Removal.Message, "refuses") || got.Removal.Node != "" {
		t.Fatalf("%s, %+v", got.State, got.Removal)
	}
	s.host.Faults.Before = nil
	s.clock.Pass(10 * time.Minute)
	if got := s.turn(); got.Removal.Node != "uid-a" || got.Removal.Message != "" {
		t.Errorf("%+v", got.Removal)
	}
}

// TestTheHostOfAnotherClusterStaysAsItIs: its kubelet was given to that one while the agent was left. An agent whose kubelet has no certificate yet, or one of
// the same cluster, removes everything.
func TestTheHostOfAnotherClusterStaysAsItIs(t *testing.T) {
	of := func(server string) string {
		return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: '" + server + "'}}]\n"
	}
	s := withOwnService(t)
	s.cluster.access = of("https://api-int.example.com:6443")
	s.host.Plant(layout.FileKubeconfig, of("https://api-int.other.example.com:6443"))
	s.end()
	if got := s.turn(); got.State != published.StateFailed || got.Removal.Node != "" || !strings.Contains(got.Removal.Message, `"https://api-int.other.example.com:6443"; nothing was changed`) ||
		s.service(bundle.RemovalService) != plan.ServiceAbsent {
		t.Fatalf("%s, %+v", got.State, got.Removal)
	}
	s.host.Plant(layout.FileKubeconfig, s.cluster.access)
	s.clock.Pass(10 * time.Minute)
	if got := s.turn(); got.Removal.Node != "uid-a" {
		t.Errorf("%+v", got.Removal)
	}
}

// TestTheRemoverReportsBeforeItsAccessIsRemoved, and not before the host is clean. Without the Node no operator waits.
func TestTheRemoverReportsBeforeItsAccessIsRemoved(t *testing.T) {
	for name, tt := range map[string]struct {
		uid     string
		reports int
	}{
		"the Node":                      {"uid-a", 1},
		"a deleted Node":                {"", 0},
		"another Node of the same name": {"uid-b", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := withOwnService(t)
			s.end()
			s.turn()
			s.cluster.reports, s.cluster.node.UID = nil, tt.uid
			atReport := ""
			cluster := reporting{s.cluster, func(published.Report) {
				atReport = s.file(applier.RemovalAccess) + s.file(agentProgram) + s.file(kubeletConf)
			}}
			r := s.remover()
			r.Cluster = cluster
			if err := r.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(s.cluster.reports) != tt.reports || tt.reports > 0 && (!s.lastReport().Removal.IsDoneFor(published.NodeID{UID: "uid-a"}) || atReport != "a kubeconfig") {
				t.Errorf("%d reports, then the host had %q", len(s.cluster.reports), atReport)
			}
			if s.file(applier.RemovalAccess) != "" {
				t.Error("the kubeconfig is left")
			}
		})
	}
}

// reporting calls a function before each report.
type reporting struct {
	*fakeCluster
	before func(published.Report)
}

func (c reporting) Report(ctx context.Context, s Status) error {
	r, err := published.DecodeReport(s.Text)
	if err != nil {
		return err
	}
	c.before(r)
	return c.fakeCluster.Report(ctx, s)
}

// TestALateReportOfTheAgent does not stay in the place of the end: it was on its way when the agent was stopped.
func TestALateReportOfTheAgent(t *testing.T) {
	s := withOwnService(t)
	s.end()
	s.turn()
	late := s.cluster.node.Report
	s.cluster.reports = nil
	waits := 0
	s.waits.at = func(time.Duration) {
		if waits++; waits == 1 {
			s.cluster.node.Report = late
		}
	}
	if err := s.remover().Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := published.DecodeReport(s.cluster.node.Report); err != nil || !r.Removal.Done || len(s.cluster.reports) != 2 || s.file(applier.RemovalAccess) != "" {
		t.Errorf("%+v, %v, after %d reports", r.Removal, err, len(s.cluster.reports))
	}
}

// TestTheRemoverRepeatsWhatFails: what cannot be removed is reported once, and an API server that is away is waited for.
func TestTheRemoverRepeatsWhatFails(t *testing.T) {
	s := withOwnService(t)
	s.end()
	s.turn()
	s.cluster.reports = nil
	s.cluster.node.Report = "" // others have removed it
	locked, waits := true, 0
	s.host.Faults.Before = func(op simulation.Operation) error {
		if locked && op.Verb == simulation.VerbRemove && op.Target == kubeletConf {
			return &applier.FileError{Path: kubeletConf, Reason: applier.FileLocked, Err: errors.New("it is open")}
		}
		return nil
	}
	var seen []published.RemovalProgress
	cluster := reporting{s.cluster, func(r published.Report) { seen = append(seen, r.Removal) }}
	r := s.remover()
	r.Cluster = cluster
	s.waits.at = func(time.Duration) {
		switch waits++; waits {
		case 2:
			locked = false
			s.cluster.away = errors.New("the API server is away")
		case 4:
			s.cluster.away = nil
		}
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 2 || !strings.Contains(seen[0].Message, "it is open") || seen[0].Done || !seen[1].Done {
		t.Errorf("reports %+v", seen)
	}
	if s.service(bundle.AgentService) != plan.ServiceAbsent {
		t.Error("the agent is left")
	}
}

// TestARemovalInterruptedAtAnyStepIsResumed kills the process before every single step, of the agent and of the service after it: by a power cut, which boots
// the host, or alone. At the end the host is what a cleanup over SSH leaves, without uploaded agents, and the operator knows.
func TestARemovalInterruptedAtAnyStepIsResumed(t *testing.T) {
	start := withOwnService(t)
	start.end()
	want := start.copied(t)
	if _, err := want.remover().Engine.Cleanup(t.Context(), applier.Options{}); err != nil {
		t.Fatal(err)
	}
	want.host.Discard(bundle.UploadFolder + `\wmco-node-0123456789ab.exe`)
	want.host.Discard(bundle.UploadFolder)
	want.powerCut(t)
	for name, interrupted := range map[string]func(*signing, *testing.T){"a power cut": (*signing).powerCut, "a killed process": (*signing).processEnd} {
		t.Run(name, func(t *testing.T) {
			for step := 0; ; step++ {
				s := start.copied(t)
				s.host.CutAt(step)
				cut := s.untilEnd(t)
				if !cut && step < 20 {
					t.Fatalf("only %d steps", step)
				}
				s.host.Revive()
				for range 5 {
					interrupted(s, t)
					s.untilEnd(t)
				}
				s.powerCut(t)
				if diff := cmp.Diff(want.place(), s.place()); diff != "" {
					t.Fatalf("cut at step %d (-want +got):\n%s", step, diff)
				}
				if !s.lastReport().Removal.IsDoneFor(published.NodeID{UID: "uid-a"}) {
					t.Fatalf("cut at step %d: the operator does not know: %+v", step, s.lastReport().Removal)
				}
				if !cut {
					return
				}
			}
		})
	}
}

// copied is another host that is the same, with its Node.
func (s *signing) copied(t *testing.T) *signing {
	t.Helper()
	clock := hostsim.NewClock(s.clock.Now())
	w := &world{t: t, clock: clock, host: s.host.Copy(clock), bundle: s.bundle, changed: make(chan struct{}, 1), waits: &patient{Clock: clock}}
	w.cluster = &fakeCluster{parts: s.cluster.parts, ready: clock.Now, node: s.cluster.node}
	w.restart()
	return &signing{world: w, keys: s.keys, sequence: s.sequence}
}

// untilEnd runs the processes whose services run: the agent, then the service of the removal. It reports whether one was killed.
func (s *signing) untilEnd(t *testing.T) (cut bool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s.waits.at = func(time.Duration) {
		if s.host.Cut() {
			stop()
		}
	}
	if s.service(bundle.AgentService) == plan.ServiceRunning {
		s.restart()
		s.recallRemoval(ctx)
		_ = s.runDueWork(ctx) // the end of its process, where it was killed
	}
	if !s.host.Cut() && s.service(bundle.RemovalService) == plan.ServiceRunning {
		_ = s.remover().Run(ctx)
	}
	return s.host.Cut()
}

// powerCut boots the host.
func (s *signing) powerCut(t *testing.T) {
	t.Helper()
	if err := s.host.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.clock.Boot()
}

// processEnd ends the processes of the agent and of the removal. Windows starts the services again that it is to.
func (s *signing) processEnd(t *testing.T) {
	t.Helper()
	for _, name := range []string{bundle.AgentService, bundle.RemovalService} {
		if s.service(name) == plan.ServiceRunning {
			s.kill(name)
			if err := s.host.StartByItself(t.Context(), name); err != nil && s.service(name) != plan.ServiceAbsent {
				t.Fatal(err)
			}
		}
	}
}

// place is what the host is: files, services and settings.
func (s *signing) place() simulation.Snapshot {
	snap := s.host.Snapshot()
	snap.Boot, snap.Facts.BootTime = 0, ""
	return snap
}
