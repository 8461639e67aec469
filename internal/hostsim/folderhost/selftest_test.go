//go:build unix

package folderhost

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wmco/applier"
	"wmco/applier/selftest"
	"wmco/applier/selftest/result"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/simulation"
)

// newMachine returns a new simulated host as selftest.Run tests it.
func newMachine(t *testing.T) Machine {
	t.Helper()
	root := t.TempDir()
	// Every Windows has this folder.
	ok(t, create(t, root).MakeDirectory(t.Context(), `C:\ProgramData`, bundle.AccessUsers))
	return NewMachine(root, Options{Now: hostsim.NewClock(hostsim.Epoch()).Now})
}

// now returns the files, services and settings of a host.
func (m Machine) now(t *testing.T) (snap simulation.Snapshot) {
	t.Helper()
	ok(t, m.with(func(h *Host) error {
		snap = snapshot(t, h)
		return nil
	}))
	return snap
}

// changed returns how the host differs from what it was before. How often it has booted does not matter.
func (m Machine) changed(t *testing.T, before simulation.Snapshot) string {
	t.Helper()
	return cmp.Diff(before, m.now(t), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(simulation.Snapshot{}, "Boot"))
}

// TestASelfTestPassesAndLeavesNothing runs the whole self-test on a simulated host.
func TestASelfTestPassesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	before := m.now(t)
	r, err := selftest.Run(t.Context(), m, selftest.Options{Now: time.Now, Tell: func(result.Outcome) {}})
	ok(t, err)
	for _, o := range r.Clauses {
		if o.Status == result.StatusFailed {
			t.Errorf("%s: %+v", o.Clause, o.Failures)
		}
	}
	if r.Passed+r.Skipped != len(r.Clauses) || r.Passed < 90 || r.Skipped != len(m.Skips()) || len(r.Removed)+len(r.Left) > 0 {
		t.Errorf("%d passed, %d skipped, removed %q, left %q", r.Passed, r.Skipped, r.Removed, r.Left)
	}
	if diff := m.changed(t, before); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

// killStride returns how many steps of a clause are between two kills: each step is the last one where WMCO_ALL_CALLS is set.
func killStride() int {
	if os.Getenv("WMCO_ALL_CALLS") != "" {
		return 1
	}
	return 5
}

// TestASelfTestThatIsKilledAtAnyStepLeavesNothing ends the process after some steps (killStride) of each clause that changes the host, and once more
// while the next run removes the leftovers. The end of a clause is not done.
func TestASelfTestThatIsKilledAtAnyStepLeavesNothing(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	before := m.now(t)
	clauses, steps, removed := 0, 0, 0
	for _, part := range selftest.Parts() {
		for _, c := range part.Clauses {
			if m.Skips()[c.Name] != "" {
				continue
			}
			clauses++
			// Other steps of each clause.
			for after, killed := 1+clauses%killStride(), true; killed; after += killStride() {
				killed = m.runUntilKilled(t, c, after)
				steps++
				// A run that is killed while it cleans up leaves the rest to the next one.
				m.killedAfter(after).cleaned(t)
				list, err := m.Clean(t.Context())
				if err != nil {
					t.Errorf("step %d of %q: %v", after, c.Name, err)
				}
				removed += len(list)
				if diff := m.changed(t, before); diff != "" {
					t.Fatalf("step %d of %q (-before +after):\n%s", after, c.Name, diff)
				}
			}
		}
	}
	if steps < 400/killStride() || removed < 200/killStride() {
		t.Errorf("the runs were killed at only %d steps and left only %d things", steps, removed)
	}
	t.Logf("%d kills left %d things", steps, removed)
}

// runUntilKilled runs a clause until its process is killed, after that many changes of the host. It reports whether the clause got that far.
func (m Machine) runUntilKilled(t *testing.T, c selftest.Clause, after int) (killed bool) {
	t.Helper()
	ok(t, m.Prepare(t.Context()))
	p := m.killedAfter(after)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Test(&killedClause{ctx: t.Context()}, p.machine())
	}()
	<-done
	return p.dead
}

// process is one that is killed after a number of changes of its host.
type process struct {
	on    Machine
	after int
	dead  bool
}

func (m Machine) killedAfter(changes int) *process { return &process{on: m, after: changes} }

// step counts a change. It returns hostsim.ErrCut from the last one on.
func (p *process) step() error {
	p.after--
	p.dead = p.dead || p.after <= 0
	return p.alive()
}

func (p *process) alive() error {
	if p.dead {
		return hostsim.ErrCut
	}
	return nil
}

// machine returns the Machine of the process. A process that is killed changes nothing more by the host, nor as another program.
func (p *process) machine() Machine {
	m := p.on
	m.opened = func(h *Host) {
		h.Begin = func(simulation.Operation) error { return p.alive() }
		h.End = func(simulation.Operation) error { return p.step() }
	}
	m = m.withFixtures()
	open, reach := m.Open, m.Reach
	m.Open = func(t selftest.T) applier.Host {
		p.endIfDead()
		return open(t)
	}
	m.Reach = func(t selftest.T) *simulation.Host {
		p.endIfDead()
		defer func() { _ = p.step() }()
		return reach(t)
	}
	return m
}

func (p *process) endIfDead() {
	if p.dead {
		runtime.Goexit()
	}
}

// cleaned removes what a killed run has left until the process is killed itself.
func (p *process) cleaned(t *testing.T) {
	t.Helper()
	if _, err := p.machine().Clean(t.Context()); err != nil && !p.dead {
		t.Error(err)
	}
}

// killedClause is a T of a process that ends before it cleans up. What the clause finds does not matter.
type killedClause struct {
	ctx context.Context //nolint:containedctx // the context of a test is its own, as in package testing
}

var _ selftest.T = (*killedClause)(nil)

func (*killedClause) Helper()                    {}
func (*killedClause) Error(...any)               {}
func (*killedClause) Errorf(string, ...any)      {}
func (*killedClause) Fatal(...any)               { runtime.Goexit() }
func (*killedClause) Fatalf(string, ...any)      { runtime.Goexit() }
func (*killedClause) Skip(...any)                { runtime.Goexit() }
func (*killedClause) Cleanup(func())             {}
func (k *killedClause) Context() context.Context { return k.ctx }
