package applier_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/internal/hostsim/simulation"
)

// crash lets a service crash, so that the service control manager will start it again.
func (m *machine) crash(t *testing.T, service string) {
	t.Helper()
	if err := m.CrashService(t.Context(), service); err != nil {
		t.Fatal(err)
	}
}

// recoverAfter lets the service control manager start a crashed service again right after the first operation of that kind on the target.
func (m *machine) recoverAfter(t *testing.T, service string, op simulation.Operation) {
	t.Helper()
	m.Faults.After = func(done simulation.Operation) error {
		if done.Verb != op.Verb || !strings.EqualFold(done.Target, op.Target) {
			return nil
		}
		return m.RunRecovery(t.Context(), service)
	}
}

// runs checks that each service runs with the arguments that it is configured with.
func (m *machine) runs(t *testing.T, services ...string) {
	t.Helper()
	if err := m.Look(t.Context(), func(s *simulation.State) {
		for _, name := range services {
			svc := s.Services[simulation.Key(name)]
			if diff := cmp.Diff(simulation.SplitCommandLine(svc.CommandLine), svc.Argv); diff != "" || svc.Status != plan.ServiceRunning {
				t.Errorf("%s is %s (-configured +running):\n%s", name, svc.Status, diff)
			}
			if diff := cmp.Diff(svc.Environment, svc.Delivered); diff != "" {
				t.Errorf("%s has the environment (-configured +running):\n%s", name, diff)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// withArgument returns the node with another argument of a service, and another file that it reads.
func withArgument(service, argument, file string) node {
	return newNode().Changed(func(n *node) {
		n.Services = slices.Clone(n.Services)
		for i, s := range n.Services {
			if s.Name == service {
				n.Services[i].Argv = append(slices.Clone(s.Argv), argument)
			}
		}
		n.Files[file] += "# changed\n"
	})
}

const (
	kubeletFile    = `C:\k\kubelet.conf`
	containerdFile = `C:\k\containerd\containerd_conf.toml`
)

// TestAServiceThatIsStartedInBetweenRunsWithItsConfiguration: the service control manager starts a crashed service some time after the crash, whatever is done
// to it until then. None comes back with what was configured before.
func TestAServiceThatIsStartedInBetweenRunsWithItsConfiguration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, service, file string
		after               simulation.Operation
		// starts are those of the kubelet after the crash.
		starts int
	}{
		{"before its configuration is written", "kubelet", kubeletFile, simulation.Operation{Verb: simulation.VerbWrite, Target: kubeletFile}, 2},
		{"after its configuration is written", "kubelet", kubeletFile, simulation.Operation{Verb: simulation.VerbPut, Target: "kubelet"}, 2},
		{"after it was started", "kubelet", kubeletFile, simulation.Operation{Verb: simulation.VerbStart, Target: "kubelet"}, 1},
		{"a service on which another one depends that runs", "containerd", containerdFile, simulation.Operation{Verb: simulation.VerbWrite, Target: containerdFile}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine()
			m.mustApply(t, newNode())
			m.crash(t, tt.service)
			before := m.service(t, "kubelet").Starts
			m.recoverAfter(t, tt.service, tt.after)
			m.mustApply(t, withArgument(tt.service, "--changed", tt.file))
			m.runs(t, "containerd", "kubelet")
			if got := m.service(t, "kubelet").Starts - before; got != tt.starts {
				t.Errorf("the kubelet was started %d times, want %d", got, tt.starts)
			}
		})
	}
}

// service returns a service of the machine.
func (m *machine) service(t *testing.T, name string) (svc simulation.Service) {
	t.Helper()
	if err := m.Look(t.Context(), func(s *simulation.State) { svc = s.Services[simulation.Key(name)] }); err != nil {
		t.Fatal(err)
	}
	return svc
}

// TestAnInterruptedRunAndACrashedService kills the applier at each step, and lets the service control manager start the service before the next one.
func TestAnInterruptedRunAndACrashedService(t *testing.T) {
	t.Parallel()
	next := withArgument("kubelet", "--changed", kubeletFile)
	start := newMachine()
	start.mustApply(t, newNode())
	start.crash(t, "kubelet")
	whole := start.copy()
	before := whole.Steps()
	whole.mustApply(t, next)
	for cut := range whole.Steps() - before {
		m := start.copy()
		m.CutAt(cut)
		_, _ = m.apply(t, next, applier.Options{})
		if !m.Cut() {
			t.Fatalf("it was not killed at step %d", cut)
		}
		m.Revive()
		if err := m.RunRecovery(t.Context(), "kubelet"); err != nil {
			t.Fatal(err)
		}
		if _, err := m.repair(t.Context()); err != nil {
			t.Fatalf("killed at step %d: %v", cut, err)
		}
		m.runs(t, "kubelet")
		m.mustApply(t, next)
		m.runs(t, "kubelet")
	}
}

// TestAProcessOfAnotherProgramIsDrift: the running program is compared, and not only the configured one.
func TestAProcessOfAnotherProgramIsDrift(t *testing.T) {
	t.Parallel()
	const wrapper, other = `C:\k\kube-log-runner.exe`, `C:\k\other.exe`
	move := func(m *machine) error { return m.Write(t.Context(), wrapper, "users", strings.NewReader("runner")) } // the program that runs is moved aside
	for _, tt := range []struct {
		name  string
		drift func(*machine) error
		want  bool
	}{
		{"the program was replaced since", move, true},
		{"it runs as it is configured", func(*machine) error { return nil }, false},
		{"another program runs", func(m *machine) error {
			config := m.service(t, "kubelet").ServiceConfig
			hers := config
			hers.CommandLine = other
			for _, step := range []error{
				m.Write(t.Context(), other, "users", strings.NewReader("MZ")), m.StopService(t.Context(), "kubelet"), m.PutService(t.Context(), hers),
				m.StartService(t.Context(), "kubelet"), m.PutService(t.Context(), config),
			} {
				if step != nil {
					return step
				}
			}
			return nil
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine()
			m.mustApply(t, newNode())
			if err := tt.drift(m); err != nil {
				t.Fatal(err)
			}
			o := m.observe(t, newNode())
			if restarts := slices.Contains(o.Restarts, "kubelet"); restarts != tt.want || o.InSync == tt.want {
				t.Errorf("in sync %t, restarts %v: %+v", o.InSync, o.Restarts, o.Actions)
			}
			before := m.service(t, "kubelet").Starts
			if _, err := m.repair(t.Context()); err != nil {
				t.Fatal(err)
			}
			if started := m.service(t, "kubelet").Starts > before; started != tt.want {
				t.Errorf("started %t", started)
			}
			m.runs(t, "kubelet")
			if o := m.observe(t, newNode()); !o.InSync {
				t.Errorf("after the repair: %+v", o.Actions)
			}
		})
	}
}

// TestAnInterruptedRunDoesNotForgetWhatWasStartedInBetween: a service that read a file before the run wrote it is restarted by the run that resumes that one.
func TestAnInterruptedRunDoesNotForgetWhatWasStartedInBetween(t *testing.T) {
	t.Parallel()
	next := newNode().Changed(func(n *node) { n.Files[kubeletFile] += "# changed\n" })
	m := newMachine()
	m.mustApply(t, newNode())
	m.crash(t, "kubelet")
	before := m.service(t, "kubelet").Starts
	m.Faults.After = func(done simulation.Operation) error {
		switch {
		case strings.EqualFold(done.Target, journalPath): // before the file is written
			return m.RunRecovery(t.Context(), "kubelet")
		case done.Verb == simulation.VerbWrite && strings.EqualFold(done.Target, kubeletFile):
			m.CutAt(0)
		}
		return nil
	}
	if _, err := m.apply(t, next, applier.Options{}); err == nil || !m.Cut() {
		t.Fatalf("it was not killed: %v", err)
	}
	m.Faults.After = nil
	m.Revive()
	if _, err := m.repair(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := m.service(t, "kubelet").Starts - before; got != 2 {
		t.Errorf("the kubelet was started %d times, want once by its recovery and once after the file was written", got)
	}
}
