package hostsim

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/selftest"
	"wmco/bundle"
	"wmco/internal/hostsim/fixtures"
	"wmco/internal/hostsim/simulation"
)

var errInjected = errors.New("injected")

// operation is one operation on the host of newFaultyHost, and the number of its steps.
type operation struct {
	name  string
	steps int
	do    func(context.Context, *Memory) error
}

var operations = []operation{
	{"write a new file", 3, write(`C:\k\new`)},
	{"replace a file", 3, write(`C:\k\old`)},
	{"replace a running program", 4, write(`C:\k\run.exe`)},
	{"remove a running program", 1, func(ctx context.Context, m *Memory) error { return m.Remove(ctx, `C:\k\run.exe`) }},
	{"make a folder", 1, func(ctx context.Context, m *Memory) error {
		return m.MakeDirectory(ctx, `C:\k\folder`, bundle.AccessAdmins)
	}},
	{"move a file", 1, func(ctx context.Context, m *Memory) error { return m.Move(ctx, `C:\k\old`, `C:\k\moved`) }},
	{"link a file", 2, func(ctx context.Context, m *Memory) error { return m.Link(ctx, `C:\k\old`, `C:\k\second`) }},
	{"copy and truncate a file", 4, func(ctx context.Context, m *Memory) error {
		return m.CopyTruncate(ctx, `C:\k\old`, `C:\k\old.1`)
	}},
	{"start a service and its dependency", 2, func(ctx context.Context, m *Memory) error {
		return m.StartService(ctx, "b")
	}},
	{"delete a service", 1, func(ctx context.Context, m *Memory) error { return m.DeleteService(ctx, "b") }},
	{"set a variable", 1, func(ctx context.Context, m *Memory) error { return m.Set(ctx, variable("A", "b")) }},
}

func write(path string) func(context.Context, *Memory) error {
	return func(ctx context.Context, m *Memory) error {
		return m.Write(ctx, path, bundle.AccessUsers, strings.NewReader("new text"))
	}
}

func newFaultyHost(t *testing.T) *Memory {
	t.Helper()
	m := NewMemory(Facts(), NewClock(Epoch()))
	m.Place(`C:\k\old`, bundle.AccessUsers, "old text")
	m.Place(`C:\k\run.exe`, bundle.AccessUsers, "old program")
	if _, err := m.StartProcess(t.Context(), `C:\k\run.exe`); err != nil {
		t.Fatal(err)
	}
	for name, dependencies := range map[string][]string{"a": nil, "b": {"a"}} {
		config := plan.ServiceConfig{Name: name, Start: bundle.StartAuto, CommandLine: `C:\k\run.exe`, Dependencies: dependencies}
		if err := m.PutService(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestCutOperationsCanRunAgain(t *testing.T) {
	t.Parallel()
	for _, d := range operations {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			whole := newFaultyHost(t)
			before := whole.Steps()
			if err := d.do(t.Context(), whole); err != nil {
				t.Fatal(err)
			}
			if got := whole.Steps() - before; got != d.steps {
				t.Fatalf("%d steps, want %d", got, d.steps)
			}
			for n := range d.steps {
				m := newFaultyHost(t)
				m.CutAt(n)
				if err := d.do(t.Context(), m); !errors.Is(err, ErrCut) {
					t.Fatalf("cut at step %d: %v", n, err)
				}
				if _, err := m.Facts(t.Context()); !errors.Is(err, ErrCut) {
					t.Errorf("after the cut: %v", err)
				}
				m.Revive()
				if err := d.do(t.Context(), m); err != nil {
					t.Fatalf("second run after a cut at step %d: %v", n, err)
				}
				if diff := cmp.Diff(withoutAside(whole.Snapshot()), withoutAside(m.Snapshot())); diff != "" {
					t.Errorf("cut at step %d (-want +got):\n%s", n, diff)
				}
			}
		})
	}
}

// withoutAside removes programs that were moved aside: a cut may leave one under another name.
func withoutAside(s simulation.Snapshot) simulation.Snapshot {
	for path := range s.Files {
		if plan.IsLeftover(path) {
			delete(s.Files, path)
		}
	}
	return s
}

func TestFailedStepsLeaveNoFile(t *testing.T) {
	t.Parallel()
	for _, d := range operations[:3] {
		for n := range d.steps {
			m := newFaultyHost(t)
			m.FailAt(n, errInjected)
			if err := d.do(t.Context(), m); !errors.Is(err, errInjected) {
				t.Errorf("%s: %v", d.name, err)
			}
			for path := range m.Snapshot().Files {
				if strings.HasSuffix(path, ".wmco-new") {
					t.Errorf("%s left %s", d.name, path)
				}
			}
			if err := d.do(t.Context(), m); err != nil {
				t.Errorf("%s, second run: %v", d.name, err)
			}
		}
	}
}

func TestLeftoversOfCuts(t *testing.T) {
	t.Parallel()
	type files map[string]string
	const path, beside, aside = `C:\k\run.exe`, `C:\k\run.exe.wmco-new`, `C:\k\run.exe.wmco-old-1`
	tests := []struct {
		name string
		step int
		want files
	}{
		{"before the first step: nothing", 0, files{path: "old program"}},
		{"after the first step: half a file under NewName", 1, files{path: "old program", beside: "new "}},
		{"after the second step: a whole file under NewName", 2, files{path: "old program", beside: "new text"}},
		{"after the running program was moved aside: no file at the path", 3, files{aside: "old program", beside: "new text"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newFaultyHost(t)
			m.CutAt(tt.step)
			_ = write(path)(t.Context(), m) // cut
			got := files{}
			for _, p := range []string{path, beside, aside} {
				if text, ok := m.Contents(p); ok {
					got[p] = text
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFaultsOfFiles(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		faults func(*Memory, *simulation.Script)
		want   applier.FileReason
	}{
		{"disk of limited size", func(_ *Memory, s *simulation.Script) { s.DiskBytes = 20 }, applier.FileDiskFull},
		{"full folder", func(_ *Memory, s *simulation.Script) { s.Full = []string{`c:\K`} }, applier.FileDiskFull},
		{"folder without write access", func(_ *Memory, s *simulation.Script) { s.Denied = []string{`C:\k`} }, applier.FileDenied},
		{"file that is open without sharing", func(_ *Memory, s *simulation.Script) { s.Locked = []string{`C:\K\OLD`} }, applier.FileLocked},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newFaultyHost(t)
			err := m.Edit(t.Context(), func(s *simulation.State) { tt.faults(m, &s.Script) })
			if err != nil {
				t.Fatal(err)
			}
			before := m.Snapshot()
			var refusal *applier.FileError
			if err := write(`C:\k\old`)(t.Context(), m); !errors.As(err, &refusal) || refusal.Reason != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if diff := cmp.Diff(before, m.Snapshot()); diff != "" {
				t.Errorf("the host changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogAndFaultsOfOperations(t *testing.T) {
	t.Parallel()
	m := newFaultyHost(t)
	m.ClearLog()
	m.Faults.Before = func(op simulation.Operation) error {
		if op.Verb == simulation.VerbStart {
			return errInjected
		}
		return nil
	}
	m.Faults.After = func(op simulation.Operation) error {
		if op.Verb == simulation.VerbRemove {
			return errInjected
		}
		return nil
	}
	if err := m.StartService(t.Context(), "b"); !errors.Is(err, errInjected) {
		t.Errorf("got %v", err)
	}
	if err := m.Remove(t.Context(), `C:\k\old`); !errors.Is(err, errInjected) {
		t.Errorf("got %v", err)
	}
	if _, ok := m.Contents(`C:\k\old`); ok {
		t.Error("the file still exists although only the answer got lost")
	}
	want := []simulation.Operation{{Verb: simulation.VerbStart, Target: "b"}, {Verb: simulation.VerbRemove, Target: `C:\k\old`}}
	if diff := cmp.Diff(want, m.Log()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWindowsErrorsOfServices(t *testing.T) {
	t.Parallel()
	script := func(name string, b simulation.Behaviour) func(*simulation.State) {
		return func(s *simulation.State) { s.Script.Services = map[string]simulation.Behaviour{name: b} }
	}
	start := func(name string) func(context.Context, *Memory) error {
		return func(ctx context.Context, m *Memory) error { return m.StartService(ctx, name) }
	}
	tests := []struct {
		name string
		edit func(*simulation.State)
		do   func(context.Context, *Memory) error
		want simulation.SystemError
	}{
		{"missing service", func(*simulation.State) {}, start("c"), 1060},
		{"missing program", program("a", `C:\k\none.exe`), start("a"), 2},
		{"failing dependency", program("a", `C:\k\none.exe`), start("b"), 1068},
		{"missing dependency", func(s *simulation.State) { delete(s.Services, "a") }, start("b"), 1075},
		{"disabled service", func(s *simulation.State) {
			a := s.Services["a"]
			a.Start = plan.StartDisabled
			s.Services["a"] = a
		}, start("a"), 1058},
		{"program that exits at once", script("a", simulation.Behaviour{Start: simulation.StartExits}), start("a"), 1067},
		{"program that rejects its configuration", script("a", simulation.Behaviour{
			Needs: []simulation.Condition{{File: `C:\k\old`, Lacks: "old"}},
		}), start("a"), 1067},
		{"program that hangs while it starts", script("a", simulation.Behaviour{Start: simulation.StartHangs}), start("a"), 1053},
		{"stop with a running dependent", func(*simulation.State) {}, func(ctx context.Context, m *Memory) error {
			return errors.Join(m.StartService(ctx, "b"), m.StopService(ctx, "a"))
		}, 1051},
		{"delete with an open handle", script("b", simulation.Behaviour{Held: true}), func(ctx context.Context, m *Memory) error {
			return m.DeleteService(ctx, "b")
		}, 1072},
		{"delete while running", func(*simulation.State) {}, func(ctx context.Context, m *Memory) error {
			return errors.Join(m.StartService(ctx, "a"), m.DeleteService(ctx, "a"))
		}, 1072},
		{"circular dependency", func(*simulation.State) {}, func(ctx context.Context, m *Memory) error {
			return m.PutService(ctx, plan.ServiceConfig{Name: "a", Dependencies: []string{"b"}})
		}, 1059},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newFaultyHost(t)
			if err := m.Edit(t.Context(), tt.edit); err != nil {
				t.Fatal(err)
			}
			err := tt.do(t.Context(), m)
			var code simulation.SystemError
			var refusal *applier.ServiceError
			if !errors.As(err, &code) || !errors.As(err, &refusal) || code != tt.want {
				t.Errorf("got %v, want Windows error %d", err, tt.want)
			}
		})
	}
}

func program(service, path string) func(*simulation.State) {
	return func(s *simulation.State) {
		svc := s.Services[service]
		svc.CommandLine = path
		s.Services[service] = svc
	}
}

func TestServicesAfterTheirStart(t *testing.T) {
	t.Parallel()
	const target = "http://127.0.0.1:10248/healthz"
	m := newFaultyHost(t)
	err := m.Edit(t.Context(), func(s *simulation.State) {
		s.Script.Services = map[string]simulation.Behaviour{
			"a": {After: simulation.AfterRestarts},
			"b": {Answers: []string{target}, HealthyAfter: 2, Healthy: []simulation.Condition{{File: `C:\k\old`, Contains: "old"}}},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	probe := func() error { return m.Probe(t.Context(), bundle.Probe{Kind: bundle.ProbeHTTP, Target: target}) }
	for _, step := range []struct {
		name string
		do   func() error
		want error
	}{
		{"a stopped service does not answer", probe, simulation.ErrSilent},
		{"the service starts", func() error { return m.StartService(t.Context(), "b") }, nil},
		{"the first probe fails", probe, simulation.ErrSilent},
		{"the second probe fails", probe, simulation.ErrSilent},
		{"the third probe succeeds", probe, nil},
		{"the probe fails with another file", func() error {
			m.Place(`C:\k\old`, bundle.AccessUsers, "other")
			return probe()
		}, simulation.ErrSilent},
	} {
		if err := step.do(); !errors.Is(err, step.want) {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	first, err := m.Services(t.Context(), []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := m.Services(t.Context(), []string{"a"})
	if err != nil || first[0].Process == second[0].Process {
		t.Errorf("process %d both times: %v", first[0].Process, err)
	}
}

func TestVariablesInCommandLineOfService(t *testing.T) {
	t.Parallel()
	m := newFaultyHost(t)
	err := errors.Join(
		m.Set(t.Context(), variable("Level", "4")),
		m.PutService(t.Context(), plan.ServiceConfig{Name: "a", CommandLine: `C:\k\run.exe --v=%LEVEL% %none% 100%`}),
		m.StartService(t.Context(), "a"),
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`C:\k\run.exe`, "--v=4", "%none%", "100%"}
	if diff := cmp.Diff(want, (fixtures.Simulated{Reach: func(selftest.T) *simulation.Host { return m.Host }}).Seen(t, "a").Argv); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func variable(name, value string) plan.Setting {
	return plan.Setting{Kind: bundle.KindVariable, Name: name, Value: value, Present: true}
}
