package applier_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wmco/applier"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/bundletest"
	"wmco/internal/hostsim/simulation"
)

type node = bundletest.Node

func newNode() node { return bundletest.New() }

// reader reads the node as it is sent to a host that lacks contents.
func reader(t testing.TB, n node, missing []protocol.Missing) *archive.Reader {
	t.Helper()
	r, err := archive.NewReader(bytes.NewReader(n.Archive(t, missing)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// machine is a machine in memory with an engine.
type machine struct {
	*hostsim.Memory
	clock  *hostsim.Clock
	events []protocol.Event
}

func newMachine() *machine {
	clock := hostsim.NewClock(hostsim.Epoch())
	return &machine{Memory: hostsim.NewMemory(hostsim.Facts(), clock), clock: clock}
}

// copy is another machine that is the same.
func (m *machine) copy() *machine {
	clock := hostsim.NewClock(m.clock.Now())
	return &machine{Memory: m.Copy(clock), clock: clock}
}

func (m *machine) engine() *applier.Engine {
	return &applier.Engine{Host: m.Memory, Clock: m.clock, Permits: bundletest.Permit, Program: "test", Owner: "the test", Emit: func(e protocol.Event) { m.events = append(m.events, e) }}
}

// edit changes the machine without the applier.
func (m *machine) edit(change func(*simulation.State)) {
	if err := m.Edit(context.Background(), change); err != nil {
		panic(err)
	}
}

// boot restarts the machine.
func (m *machine) boot() {
	if err := m.Restart(context.Background()); err != nil {
		panic(err)
	}
	m.clock.Boot()
}

// observe asks the machine about the node.
func (m *machine) observe(t testing.TB, n node) protocol.Observation {
	t.Helper()
	o, err := m.engine().Observe(t.Context(), n.Manifest(t), reader(t, n, nil).Contents(), false)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// apply does what wmco does: it asks for missing contents and sends them.
func (m *machine) apply(t testing.TB, n node, o applier.Options) (applier.Outcome, error) {
	t.Helper()
	m.events = nil
	seen, err := m.engine().Observe(t.Context(), n.Manifest(t), reader(t, n, nil).Contents(), false)
	if err != nil {
		return applier.Outcome{}, err
	}
	return m.engine().Apply(t.Context(), n.Manifest(t), reader(t, n, seen.Missing), o)
}

func (m *machine) mustApply(t testing.TB, n node) applier.Outcome {
	t.Helper()
	o, err := m.apply(t, n, applier.Options{})
	if err != nil {
		t.Fatalf("%v: %+v", err, m.events)
	}
	return o
}

func (m *machine) repair(ctx context.Context) (applier.Outcome, error) {
	m.events = nil
	return m.engine().Repair(ctx, applier.Options{})
}

// place is what the machine is, without the applier's own records.
func (m *machine) place() simulation.Snapshot {
	s := m.Snapshot()
	for path := range s.Files {
		if strings.HasPrefix(bundle.FoldPath(path), bundle.FoldPath(`C:\ProgramData`)) {
			delete(s.Files, path)
		}
	}
	return s
}

// differs compares two machines, whatever the times at which they booted.
func differs(want, got simulation.Snapshot) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}
