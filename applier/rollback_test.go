package applier_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/simulation"
)

// badKubelet is a host whose kubelet does not become healthy with a configuration that has the word bad.
func badKubelet(t *testing.T, behaviour simulation.Behaviour) (*machine, node) {
	t.Helper()
	m, n := newMachine(), newNode()
	m.edit(func(s *simulation.State) { s.Script.Services = map[string]simulation.Behaviour{"kubelet": behaviour} })
	m.mustApply(t, n)
	m.Place(`C:\k\foreign.txt`, bundle.AccessUsers, "not ours")
	return m, n
}

var lacksBad = []simulation.Condition{{File: `C:\k\kubelet.conf`, Lacks: "bad"}}

// bad are bundles whose services do not become healthy, and how that shows.
var bad = []struct {
	name      string
	behaviour simulation.Behaviour
	change    func(*node)
}{
	{"the kubelet exits with its new configuration", simulation.Behaviour{Needs: lacksBad}, func(n *node) { n.Files[`C:\k\kubelet.conf`] = "bad" }},
	{
		"the kubelet runs and never is healthy",
		simulation.Behaviour{Answers: []string{"http://127.0.0.1/kubelet"}, Healthy: lacksBad},
		func(n *node) { n.Files[`C:\k\kubelet.conf`] = "bad" },
	},
	{"everything changes and the kubelet exits", simulation.Behaviour{Needs: lacksBad}, func(n *node) {
		changes[len(changes)-1].change(n)
		n.Files[`C:\k\kubelet.conf`] = "bad"
		n.CAs, n.SecretProxy, n.Proxy = []string{"third CA"}, "", nil
	}},
}

func TestARunIsRolledBackIfAServiceDoesNotBecomeHealthy(t *testing.T) {
	t.Parallel()
	for _, tt := range bad {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, n := badKubelet(t, tt.behaviour)
			want := m.place()
			o, err := m.apply(t, n.Changed(tt.change), applier.Options{})
			var back *applier.RolledBackError
			if !errors.As(err, &back) || o.Result != protocol.ResultRolledBack {
				t.Fatalf("%v, %+v", err, o)
			}
			if !strings.Contains(err.Error(), "kubelet") {
				t.Errorf("the error names no service: %v", err)
			}
			if diff := differs(want, m.place()); diff != "" {
				t.Errorf("not as it was (-want +got):\n%s", diff)
			}
			if o := m.observe(t, n); !o.InSync || o.Interrupted != "" {
				t.Errorf("%+v", o)
			}
		})
	}
}

// TestAHostOfTheExistingOperatorIsRolledBack rolls back on a host where nothing was managed: its own files and service are
// restored with their own security.
func TestAHostOfTheExistingOperatorIsRolledBack(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.edit(func(s *simulation.State) {
		s.Script.Services = map[string]simulation.Behaviour{"kubelet": {Needs: lacksBad}}
	})
	m.Place(`C:\k\kubelet.conf`, plan.AccessOther, "theirs")
	m.Place(`C:\k\kubelet.exe`, plan.AccessOther, "their kubelet")
	theirs := plan.ServiceConfig{Name: "kubelet", Description: "theirs", Start: bundle.StartAuto, CommandLine: `C:\k\kubelet.exe --theirs`}
	if err := errors.Join(m.PutService(t.Context(), theirs), m.StartService(t.Context(), "kubelet")); err != nil {
		t.Fatal(err)
	}
	want := m.place()
	if _, err := m.apply(t, n.Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "bad" }), applier.Options{}); err == nil {
		t.Fatal("no error")
	}
	if diff := differs(want, m.place()); diff != "" {
		t.Errorf("not as it was (-want +got):\n%s", diff)
	}
	// Without the fault, its entries become managed.
	m.mustApply(t, n)
	if s := m.Snapshot().Services["kubelet"]; s.Description != "OpenShift managed kubelet" || s.Status != plan.ServiceRunning {
		t.Errorf("%+v", s)
	}
}

func TestAnInterruptedRollbackIsResumed(t *testing.T) {
	t.Parallel()
	start, n := badKubelet(t, bad[2].behaviour)
	want := start.place()
	next := n.Changed(bad[2].change)
	rolledBack := 0
	for step := 0; ; step++ {
		m := start.copy()
		if !m.applyCutWithin(t, next, step) {
			break
		}
		_, err := m.repair(t.Context())
		var back *applier.RolledBackError
		if errors.As(err, &back) {
			rolledBack++
		} else if err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		if diff := differs(want, m.place()); diff != "" {
			t.Fatalf("step %d (-want +got):\n%s", step, diff)
		}
	}
	if rolledBack < 20 {
		t.Errorf("only %d cuts came before the end", rolledBack)
	}
}

// applyCutWithin is applyCut for a bundle that is rolled back when it is not cut.
func (m *machine) applyCutWithin(t *testing.T, n node, step int) bool {
	t.Helper()
	m.CutAt(step)
	_, err := m.apply(t, n, applier.Options{})
	cut := m.Cut()
	if !cut && err == nil {
		t.Fatalf("step %d: applied", step)
	}
	m.Revive()
	return cut
}

func TestARunThatIsNotConfirmedInTimeIsRolledBack(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	want := m.place()
	next := n.Changed(changes[2].change)
	never := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	_, err := m.apply(t, next, applier.Options{Confirm: never, ConfirmWithin: time.Minute})
	var back *applier.RolledBackError
	if !errors.As(err, &back) || !strings.Contains(err.Error(), "confirm") {
		t.Fatal(err)
	}
	if diff := differs(want, m.place()); diff != "" {
		t.Errorf("not as it was (-want +got):\n%s", diff)
	}
}

// endless is a clock whose hours do not pass.
type endless struct{ *hostsim.Clock }

// After implements applier.Clock.
func (e endless) After(d time.Duration) <-chan time.Time {
	if d >= time.Hour {
		return nil
	}
	return e.Clock.After(d)
}

func TestAnotherProcessConfirms(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	b := n.Bundle(t)
	d, err := b.Digest()
	if err != nil {
		t.Fatal(err)
	}
	e := m.engine()
	e.Clock = endless{m.clock}
	confirm := func(ctx context.Context) error {
		if err := e.Confirm(ctx, d); err != nil {
			return err
		}
		return e.AwaitConfirm(ctx, d)
	}
	seen := m.observe(t, n)
	if _, err := e.Apply(t.Context(), n.Manifest(t), reader(t, n, seen.Missing), applier.Options{Confirm: confirm, ConfirmWithin: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if o := m.observe(t, n); !o.InSync {
		t.Errorf("%+v", o)
	}
}

func TestAnUnconfirmedRunWhoseProcessDiedIsRolledBack(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	want := m.place()
	dies := func(context.Context) error {
		m.CutAt(0)
		_ = m.Remove(context.Background(), `C:\x`)
		return errors.New("dead")
	}
	if _, err := m.apply(t, n.Changed(changes[2].change), applier.Options{Confirm: dies, ConfirmWithin: time.Hour}); err == nil {
		t.Fatal("no error")
	}
	m.Revive()
	if o, err := m.repair(t.Context()); err != nil || o.Result != protocol.ResultPartial {
		t.Fatalf("before the deadline: %v, %+v", err, o)
	}
	// Setting the clock does not change that, nor does a boot.
	for _, jump := range []time.Duration{48 * time.Hour, -96 * time.Hour} {
		m.clock.Jump(jump)
		if o, err := m.repair(t.Context()); err != nil || o.Result != protocol.ResultPartial {
			t.Fatalf("the clock was set by %s: %v, %+v", jump, err, o)
		}
	}
	booted := m.copy()
	booted.boot()
	booted.clock.Pass(59 * time.Minute)
	if o, err := booted.repair(t.Context()); err != nil || o.Result != protocol.ResultPartial {
		t.Fatalf("after a boot: %v, %+v", err, o)
	}
	booted.clock.Pass(2 * time.Minute)
	m.clock.Pass(61 * time.Minute)
	var back *applier.RolledBackError
	for name, x := range map[string]*machine{"the deadline": m, "a boot and the deadline": booted} {
		if _, err := x.repair(t.Context()); !errors.As(err, &back) {
			t.Fatalf("after %s: %v", name, err)
		}
	}
	if diff := differs(want, m.place()); diff != "" {
		t.Errorf("not as it was (-want +got):\n%s", diff)
	}
}

func TestALateConfirmationDoesNotCountForTheNextRun(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.mustApply(t, n)
	next := n.Changed(changes[2].change)
	d, err := next.Bundle(t).Digest()
	if err != nil {
		t.Fatal(err)
	}
	e := m.engine()
	if err := e.Confirm(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	await := func(ctx context.Context) error { return e.AwaitConfirm(ctx, d) }
	var back *applier.RolledBackError
	if _, err := m.apply(t, next, applier.Options{Confirm: await, ConfirmWithin: time.Second}); !errors.As(err, &back) {
		t.Errorf("a confirmation of an earlier run was taken: %v", err)
	}
}

func TestAnEndpointIsRolledBack(t *testing.T) {
	t.Parallel()
	m, _ := badKubelet(t, simulation.Behaviour{Needs: lacksBad})
	m.edit(func(s *simulation.State) {
		s.Facts.Networks = append(s.Facts.Networks, bundle.HNSNetwork{Name: "overlay"})
	})
	n := newNode().Changed(func(n *node) {
		n.Endpoints = []bundle.Endpoint{{Name: "VIP", Network: "overlay", Compartment: 1, Impact: bundle.ImpactNone}}
	})
	m.mustApply(t, n)
	want := m.place()
	bad := n.Changed(func(n *node) { n.Endpoints, n.Files[`C:\k\kubelet.conf`] = nil, "bad" })
	if _, err := m.apply(t, bad, applier.Options{}); err == nil {
		t.Fatal("no error")
	}
	if diff := differs(want, m.place()); diff != "" {
		t.Errorf("not as it was (-want +got):\n%s", diff)
	}
}

func TestARollbackDoesNotNeedTheKeptContents(t *testing.T) {
	t.Parallel()
	m, n := badKubelet(t, simulation.Behaviour{Needs: lacksBad})
	want := m.place()
	for path := range m.Snapshot().Files {
		if strings.Contains(path, `\contents\`) {
			m.Place(path, bundle.AccessAdmins, "corrupt")
		}
	}
	_, err := m.apply(t, n.Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "bad" }), applier.Options{})
	var back *applier.RolledBackError
	if !errors.As(err, &back) {
		t.Fatalf("%v", err)
	}
	if diff := differs(want, m.place()); diff != "" {
		t.Errorf("not as it was (-want +got):\n%s", diff)
	}
}

// Two unmanaged files have equal contents; both are restored, and stay two files.
func TestEqualFilesAreRolledBackAsTwoFiles(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	m.edit(func(s *simulation.State) {
		s.Script.Services = map[string]simulation.Behaviour{"kubelet": {Needs: lacksBad}}
	})
	n = n.Changed(func(n *node) { n.Files[`C:\k\kubelet.conf`] = "bad" })
	twins := []string{`C:\k\kubelet.conf`, `C:\k\containerd\containerd_conf.toml`}
	for _, path := range twins {
		m.Place(path, bundle.AccessUsers, "theirs")
	}
	want := m.place()
	_, err := m.apply(t, n, applier.Options{})
	var back *applier.RolledBackError
	if !errors.As(err, &back) {
		t.Fatalf("%v", err)
	}
	if diff := differs(want, m.place()); diff != "" {
		t.Errorf("not as it was (-want +got):\n%s", diff)
	}
	infos, err := m.Stat(t.Context(), twins)
	if err != nil || infos[0].ID == infos[1].ID {
		t.Errorf("one file: %+v, %v", infos, err)
	}
}
