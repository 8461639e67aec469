package hostsim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"wmco/applier"
	"wmco/bundle"
	"wmco/internal/hostsim/simulation"
)

// Memory is a host in memory. Edit, StartProcess, Restart, Place and their like are what others do to it, also while
// the applier's process is dead. Reboot only asks for a restart, which Restart makes.
type Memory struct {
	*simulation.Host
	// Faults may be changed between operations.
	Faults Faults

	disk *memoryDisk

	mu    sync.Mutex
	state *simulation.State
	owner string
	log   []simulation.Operation
	steps steps
}

var _ applier.Host = (*Memory)(nil)

// Epoch is when the clocks of tests start.
func Epoch() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// Facts are those of an ordinary host.
func Facts() bundle.Facts {
	return bundle.Facts{
		Schema:          bundle.FactsSchema,
		HostName:        "winhost",
		Addresses:       []string{"10.0.0.5"},
		DefaultRoute:    bundle.DefaultRoute{Address: "10.0.0.5", Gateway: "10.0.0.1"},
		OSBuild:         "10.0.20348",
		DefenderRunning: true,
	}
}

// timepiece is a clock by which a host boots.
type timepiece interface{ Now() time.Time }

// NewMemory returns a host with an empty drive that reports facts.
func NewMemory(facts bundle.Facts, clock timepiece) *Memory {
	return newMemory(newMemoryDisk(clock.Now), simulation.NewState(facts, clock.Now()), clock)
}

func newMemory(disk *memoryDisk, state *simulation.State, clock timepiece) *Memory {
	m := &Memory{disk: disk, state: state, steps: steps{cutAt: -1, failAt: map[int]error{}}}
	m.Host = &simulation.Host{
		Storage: simulation.Storage{State: faultyStore{m}, Files: faultyDisk{disk, m}},
		Own:     simulation.Storage{State: ownStore{m}, Files: disk},
		Now:     clock.Now,
		Begin:   m.begin,
		End:     m.end,
	}
	return m
}

// Copy returns another host that is what this one is: files, services, settings. It has no faults and no log.
func (m *Memory) Copy(clock *Clock) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return newMemory(m.disk.copy(clock.Now), m.state.Clone(), clock)
}

// Lock implements applier.Host. It does not wait.
func (m *Memory) Lock(ctx context.Context, owner string) (func() error, error) {
	if err := m.CheckLock(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case m.steps.cut:
		return nil, ErrCut
	case m.owner != "":
		return nil, &applier.LockedError{Owner: m.owner}
	}
	m.owner = owner
	return m.unlock, nil
}

func (m *Memory) unlock() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.steps.cut {
		return ErrCut
	}
	m.owner = ""
	return nil
}

// Log returns the operations so far that were to change something, oldest first.
func (m *Memory) Log() []simulation.Operation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.log)
}

// ClearLog forgets the operations so far.
func (m *Memory) ClearLog() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = nil
}

func (m *Memory) begin(op simulation.Operation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.steps.cut {
		return ErrCut
	}
	m.log = append(m.log, op)
	if m.Faults.Before == nil {
		return nil
	}
	return m.Faults.Before(op)
}

func (m *Memory) end(op simulation.Operation) error {
	if m.Faults.After == nil {
		return nil
	}
	return m.Faults.After(op)
}

// Snapshot returns what the whole host is, also after a cut.
func (m *Memory) Snapshot() simulation.Snapshot {
	snap, err := m.Host.Snapshot(context.Background())
	if err != nil {
		panic(fmt.Sprintf("reading a disk in memory: %v", err))
	}
	return snap
}

// faultyStore keeps the state as the applier's process sees it: every change is a step.
type faultyStore struct{ host *Memory }

func (s faultyStore) Load() (*simulation.State, error) {
	if err := s.host.alive(); err != nil {
		return nil, err
	}
	return ownStore(s).Load()
}

func (s faultyStore) Save(state *simulation.State) error {
	return s.host.effect(func() error {
		s.host.state = state.Clone()
		return nil
	})
}

// ownStore keeps what happens without the applier: no step, and no cut.
type ownStore struct{ host *Memory }

func (s ownStore) Load() (*simulation.State, error) {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	return s.host.state.Clone(), nil
}

func (s ownStore) Save(state *simulation.State) error {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	s.host.state = state.Clone()
	return nil
}
