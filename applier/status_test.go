package applier_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/protocol"
	"wmco/internal/hostsim"
)

// errIO is an error of the operating system that no host translates.
var errIO = errors.New("input/output error")

// faulty is a host of which one kind of operation fails.
type faulty struct {
	*hostsim.Memory
	release, stat, open bool
}

func (h faulty) Lock(ctx context.Context, owner string) (func() error, error) {
	release, err := h.Memory.Lock(ctx, owner)
	if err != nil || !h.release {
		return release, err
	}
	return func() error { return errors.Join(release(), errIO) }, nil
}

func (h faulty) Stat(ctx context.Context, paths []string) ([]plan.FileInfo, error) {
	if h.stat {
		return nil, errIO
	}
	return h.Memory.Stat(ctx, paths)
}

func (h faulty) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	if h.open {
		return nil, errIO
	}
	return h.Memory.Open(ctx, path)
}

func TestALockThatCannotBeReleasedChangesNoResult(t *testing.T) {
	t.Parallel()
	m, n := newMachine(), newNode()
	e := m.engine()
	e.Host = faulty{Memory: m.Memory, release: true}
	seen := m.observe(t, n)
	if o, err := e.Apply(t.Context(), n.Manifest(t), reader(t, n, seen.Missing), applier.Options{}); err != nil || o.Result != protocol.ResultApplied {
		t.Errorf("apply: %v, %+v", err, o)
	}
	if o, err := e.Repair(t.Context(), applier.Options{}); err != nil || o.Result != protocol.ResultSame {
		t.Errorf("repair: %v, %+v", err, o)
	}
	if o, err := e.Cleanup(t.Context(), applier.Options{}); err != nil || o.Result != protocol.ResultApplied {
		t.Errorf("cleanup: %v, %+v", err, o)
	}
	notes := 0
	for _, x := range m.events {
		if x.Event == protocol.EventNote {
			notes++
		}
	}
	if notes != 3 {
		t.Errorf("%d notes, want one for each run", notes)
	}
}

// A host that cannot be read is no fault of the bundle.
func TestAHostThatCannotBeReadRefusesNothing(t *testing.T) {
	t.Parallel()
	n := newNode()
	start := newMachine()
	start.mustApply(t, n)
	for name, fault := range map[string]func(*machine) applier.Host{
		"stat fails": func(m *machine) applier.Host { return faulty{Memory: m.Memory, stat: true} },
		"open fails": func(m *machine) applier.Host { return faulty{Memory: m.Memory, open: true} },
	} {
		m := start.copy()
		e := m.engine()
		e.Host = fault(m)
		var fault *applier.FaultError
		if _, err := e.Observe(t.Context(), n.Manifest(t), reader(t, n, nil).Contents(), true); !errors.As(err, &fault) {
			t.Errorf("%s: observe: %v", name, err)
		}
		for what, do := range map[string]func() (applier.Outcome, error){
			"apply": func() (applier.Outcome, error) {
				return e.Apply(t.Context(), n.Manifest(t), reader(t, n, nil), applier.Options{})
			},
			"repair":  func() (applier.Outcome, error) { return e.Repair(t.Context(), applier.Options{}) },
			"cleanup": func() (applier.Outcome, error) { return e.Cleanup(t.Context(), applier.Options{}) },
		} {
			if o, err := do(); !errors.As(err, &fault) || o.Result != protocol.ResultPartial {
				t.Errorf("%s: %s: %v, %+v", name, what, err, o)
			}
		}
	}
}

// TestNoFaultOfTheHostIsARefusal fails every step of every command with an error that no host translates.
func TestNoFaultOfTheHostIsARefusal(t *testing.T) {
	t.Parallel()
	n := newNode()
	next := n.Changed(changes[len(changes)-1].change)
	applied := newMachine()
	applied.mustApply(t, n)
	drifted := applied.copy()
	drifted.Discard(`C:\k\kubelet.conf`)
	for name, tt := range map[string]struct {
		start *machine
		do    func(*machine) (applier.Outcome, error)
	}{
		"apply":   {applied, func(m *machine) (applier.Outcome, error) { return m.apply(t, next, applier.Options{}) }},
		"repair":  {drifted, func(m *machine) (applier.Outcome, error) { return m.repair(t.Context()) }},
		"cleanup": {applied, func(m *machine) (applier.Outcome, error) { return m.engine().Cleanup(t.Context(), applier.Options{}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := tt.start.copy()
			if _, err := tt.do(whole); err != nil {
				t.Fatal(err)
			}
			for step := range whole.Steps() {
				m := tt.start.copy()
				m.FailAt(step, errIO)
				o, err := tt.do(m)
				if o.Result == protocol.ResultRefused || err == nil && o.Result == protocol.ResultPartial {
					t.Errorf("step %d: %v, %+v", step, err, o.Event)
				}
			}
		})
	}
}
