package applier_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/applier/records"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/simulation"
)

// withAgent is a bundle with a node agent of its own version.
func withAgent(version string) node {
	return newNode().Changed(func(n *node) {
		path := `C:\k\agent\wmco-node-` + version + `.exe`
		n.Programs[path] = "node agent " + version
		n.Services = append(n.Services, bundletest.Service(bundle.AgentService, []string{path, "run"}, nil, path))
		n.Files[`C:\k\kubelet.conf`] = "of " + version
	})
}

// withFirstAgent is a machine whose agent is of the first version.
func withFirstAgent(t *testing.T) *machine {
	m := newMachine()
	m.mustApply(t, withAgent("1"))
	return m
}

func (m *machine) agent() *applier.Engine {
	e := m.engine()
	e.Self = bundle.AgentService
	return e
}

// confirming are options of an agent whose Node answers so.
func confirming(err error) applier.Options {
	answer := func(context.Context) error { return err }
	return applier.Options{Confirm: answer, ConfirmWithin: 5 * time.Minute, Confirmer: "node", Resume: func(string) func(context.Context) error { return answer }}
}

// follow is what the agent does about another bundle.
func (m *machine) follow(t *testing.T, n node, o applier.Options) (applier.Outcome, error) {
	t.Helper()
	m.events = nil
	return m.agent().Apply(t.Context(), n.Manifest(t), reader(t, n, m.observe(t, n).Missing), o)
}

// exchange ends the process of the agent, and starts it as its service is configured now.
func (m *machine) exchange(t *testing.T) {
	t.Helper()
	if err := errors.Join(m.StopService(t.Context(), bundle.AgentService), m.StartService(t.Context(), bundle.AgentService)); err != nil {
		t.Fatal(err)
	}
}

// handedOver is a machine on which the first agent has started the second one.
func handedOver(t *testing.T) *machine {
	t.Helper()
	m := withFirstAgent(t)
	o, err := m.follow(t, withAgent("2"), confirming(nil))
	if err != nil || o.Result != protocol.ResultHandedOver || !o.RestartSelf {
		t.Fatalf("%v, %+v", err, o)
	}
	if s := m.Snapshot().Services[bundle.GuardService]; s.Status != plan.ServiceRunning {
		t.Fatalf("the guard is %+v", s)
	}
	m.exchange(t)
	return m
}

// ends is the end of a new agent's start: repairs until nothing is handed over any longer.
func (m *machine) ends(t *testing.T, o applier.Options) error {
	t.Helper()
	for range 5 {
		outcome, err := m.agent().Repair(t.Context(), o)
		if outcome.RestartSelf {
			m.exchange(t)
		}
		if err != nil || outcome.Result != protocol.ResultHandedOver {
			return err
		}
	}
	t.Fatal("it is handed over without end")
	return nil
}

// records are those that programs of two versions read.
func (m *machine) records() string {
	var all string
	for _, path := range []string{records.FileJournal, records.FileLedger, records.FileStaged} {
		text, _ := m.Contents(path)
		all += text
	}
	return all
}

func applied(t *testing.T, n node) *machine {
	m := withFirstAgent(t)
	m.mustApply(t, n)
	return m
}

func TestANewAgentEndsTheRunThatItCameWith(t *testing.T) {
	t.Parallel()
	m := handedOver(t)
	if err := m.ends(t, confirming(nil)); err != nil {
		t.Fatal(err)
	}
	if diff := differs(applied(t, withAgent("2")).place(), m.place()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, there := m.Contents(records.FileGuard); there {
		t.Error("the program of the guard stays")
	}
	if o, err := m.engine().GuardHandover(t.Context(), bundle.AgentService); err != nil || o.Result != "" {
		t.Errorf("a guard without anything to restore: %v, %+v", err, o)
	}
	if o := m.observe(t, withAgent("2")); !o.InSync || o.Applied != o.Bundle {
		t.Errorf("%+v", o)
	}
}

// A new agent that cannot say that its node works changes nothing, no record either: the agent from before has to read them.
func TestAnAgentThatDoesNotConfirmIsExchangedForTheOneBefore(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T, *machine){
		"it crashes": func(*testing.T, *machine) {},
		"it is not confirmed": func(t *testing.T, m *machine) {
			before := m.records()
			var partial *applier.PartialError
			if err := m.ends(t, confirming(errors.New("the Node is not Ready"))); !errors.As(err, &partial) {
				t.Errorf("%v", err)
			}
			if m.records() != before {
				t.Error("it writes records")
			}
		},
		"it follows another bundle before it is confirmed": func(t *testing.T, m *machine) {
			if _, err := m.follow(t, withAgent("3"), confirming(errors.New("the Node is not Ready"))); err == nil {
				t.Error("no error")
			}
		},
		"the host boots": func(_ *testing.T, m *machine) { m.boot() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := handedOver(t)
			start(t, m)
			o, err := m.engine().GuardHandover(t.Context(), bundle.AgentService)
			var back *applier.RolledBackError
			if !errors.As(err, &back) || o.Result != protocol.ResultRolledBack {
				t.Fatalf("%v, %+v", err, o)
			}
			checkRestored(t, m)
		})
	}
}

// TestACleanupRemovesTheProgramOfAGuard, which has another name as long as the agent runs that it has restored: both are names of one file.
func TestACleanupRemovesTheProgramOfAGuard(t *testing.T) {
	t.Parallel()
	m := handedOver(t)
	if _, err := m.engine().GuardHandover(t.Context(), bundle.AgentService); err == nil {
		t.Fatal("no error")
	}
	if err := m.ends(t, confirming(nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.engine().Cleanup(t.Context(), applier.Options{}); err != nil {
		t.Fatal(err)
	}
	for path := range m.Snapshot().Files {
		if strings.HasPrefix(path, plan.StateFolder+`\`) {
			t.Errorf("%s is left", path)
		}
	}
}

// The new agent stops the guard when it is confirmed. A guard that is stopping the new agent then must not leave the host without either.
func TestAGuardThatIsStoppedWhileItRestoresFinishes(t *testing.T) {
	t.Parallel()
	m := handedOver(t)
	ctx, stop := context.WithCancel(t.Context())
	before := m.End
	m.End = func(op simulation.Operation) error {
		if op.Verb == simulation.VerbStop && op.Target == bundle.AgentService {
			stop()
		}
		if before != nil {
			return before(op)
		}
		return nil
	}
	var back *applier.RolledBackError
	if _, err := m.engine().GuardHandover(ctx, bundle.AgentService); !errors.As(err, &back) || ctx.Err() == nil {
		t.Fatalf("%v, stopped %v", err, ctx.Err())
	}
	checkRestored(t, m)
}

// An older program ends the run that was handed over to it as any other, and knows no guard.
func TestAGuardThatIsLeftOverIsRemoved(t *testing.T) {
	t.Parallel()
	m := handedOver(t)
	if err := m.ends(t, confirming(nil)); err != nil {
		t.Fatal(err)
	}
	err := m.WriteFile(t.Context(), records.FileGuard, bundle.AccessAdmins, []byte("MZ"))
	if err == nil {
		err = m.PutService(t.Context(), plan.ServiceConfig{Name: bundle.GuardService, Start: bundle.StartAuto, CommandLine: records.FileGuard})
	}
	if err != nil {
		t.Fatal(err)
	}
	if o, err := m.agent().Repair(t.Context(), confirming(nil)); err != nil || o.Result != protocol.ResultSame {
		t.Errorf("%v, %+v", err, o)
	}
	if _, there := m.Contents(records.FileGuard); there {
		t.Error("its program stays")
	}
	if s := m.Snapshot().Services[bundle.GuardService]; s.Name != "" {
		t.Errorf("it stays: %+v", s)
	}
}

// checkRestored checks that the machine is as before the second agent came, and that the first one learns of it.
func checkRestored(t *testing.T, m *machine) {
	t.Helper()
	u, err := m.agent().UnreportedRollback(t.Context())
	if err != nil || u.Bundle != m.observe(t, withAgent("2")).Bundle || u.Why == "" {
		t.Errorf("%+v, %v", u, err)
	}
	// What was moved aside while the guard ran it goes with the next run.
	if o, err := m.agent().Repair(t.Context(), confirming(nil)); err != nil || o.RestartSelf {
		t.Errorf("%v, %+v", err, o)
	}
	if diff := differs(withFirstAgent(t).whateverBoot(), m.whateverBoot()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := m.Snapshot().Services[bundle.AgentService]; s.Status != plan.ServiceRunning {
		t.Errorf("the agent is %s", s.Status)
	}
	if o := m.observe(t, withAgent("1")); !o.InSync || o.Interrupted != "" {
		t.Errorf("%+v", o)
	}
	if err := m.agent().ForgetUndone(t.Context()); err != nil {
		t.Error(err)
	}
	if u, err := m.agent().UnreportedRollback(t.Context()); err != nil || u.Bundle != "" {
		t.Errorf("%+v, %v", u, err)
	}
}

// A machine whose power is cut at any moment of an exchange ends with one of the two agents, and with everything that belongs to it.
func TestAnExchangeOfTheAgentCanBeCutAnywhere(t *testing.T) {
	t.Parallel()
	first, second := withFirstAgent(t).whateverBoot(), applied(t, withAgent("2")).whateverBoot()
	for _, stage := range []struct {
		name  string
		start func(*testing.T) *machine
		do    func(*testing.T, *machine) error
	}{
		{"the first agent", withFirstAgent, func(t *testing.T, m *machine) error {
			_, err := m.follow(t, withAgent("2"), confirming(nil))
			return err
		}},
		{"the second agent", handedOver, func(t *testing.T, m *machine) error {
			_, err := m.agent().Repair(t.Context(), confirming(nil))
			return err
		}},
		{"the guard", handedOver, func(t *testing.T, m *machine) error {
			_, err := m.engine().GuardHandover(t.Context(), bundle.AgentService)
			return err
		}},
	} {
		t.Run(stage.name, func(t *testing.T) {
			t.Parallel()
			start := stage.start(t)
			cuts := 0
			stride := 3
			if os.Getenv("WMCO_ALL_CALLS") != "" {
				stride = 1
			}
			for step := 0; ; step += stride {
				m := start.copy()
				m.CutAt(step)
				err := stage.do(t, m)
				if !errors.Is(err, hostsim.ErrCut) {
					break
				}
				cuts++
				m.Revive()
				m.boot() // everything that starts with the host runs
				if _, there := m.Contents(bundle.Program(m.Snapshot().Services[bundle.AgentService].CommandLine)); !there {
					t.Fatalf("cut at %d: the program of the agent's service is gone", step)
				}
				for _, works := range []bool{true, false} {
					m := m.copy()
					name := fmt.Sprintf("cut at %d, the second agent works: %t", step, works)
					m.settle(t, works)
					if _, err := m.agent().UnreportedRollback(t.Context()); err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					// What was moved aside while the guard ran it goes with the next run.
					if o, err := m.agent().Repair(t.Context(), confirming(nil)); err != nil || o.RestartSelf {
						t.Fatalf("%s: %v, %+v", name, err, o)
					}
					asFirst, asSecond := differs(first, m.whateverBoot()), differs(second, m.whateverBoot())
					if asFirst != "" && asSecond != "" {
						t.Fatalf("%s: neither the first (-want +got):\n%s\nnor the second:\n%s", name, asFirst, asSecond)
					}
				}
			}
			if cuts < 5 {
				t.Errorf("%d cuts", cuts)
			}
		})
	}
}

// whateverBoot is what the machine is, whatever it was when it booted.
func (m *machine) whateverBoot() simulation.Snapshot {
	s := m.withoutShadows()
	s.Boot = 0
	return s
}

// settle lets the agent and the guard go on after a boot until both have ended. Works reports whether the second agent does.
func (m *machine) settle(t *testing.T, works bool) {
	t.Helper()
	for range 8 {
		isSecond := m.Snapshot().Services[bundle.AgentService].CommandLine == `C:\k\agent\wmco-node-2.exe run`
		if !isSecond || works {
			o, err := m.agent().Repair(t.Context(), confirming(nil))
			var back *applier.RolledBackError
			if err != nil && !errors.As(err, &back) {
				t.Fatalf("the agent: %v", err)
			}
			if o.RestartSelf {
				m.exchange(t)
			}
			if o.Result != protocol.ResultHandedOver && (err == nil || !o.RestartSelf) {
				return
			}
		}
		if works {
			continue
		}
		_, err := m.engine().GuardHandover(t.Context(), bundle.AgentService)
		var back *applier.RolledBackError
		if err != nil && !errors.As(err, &back) {
			t.Fatalf("the guard: %v", err)
		}
	}
}
