package hosttest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"wmco/applier"
	"wmco/applier/hosttest/simulation"
	"wmco/bundle"
)

// ErrCut is what every operation gives once the applier's process is dead.
var ErrCut = errors.New("the process was killed")

// Memory is a host in memory. Beside its files it is a simulation.Machine, whose Edit, StartProcess and Restart happen
// behind the host's back, also while the applier's process is dead. Its Reboot only asks; Restart boots.
type Memory struct {
	*simulation.Machine
	// Faults may be changed between operations.
	Faults Faults

	mu     sync.Mutex
	state  *simulation.State
	names  map[string]name
	serial int
	owner  string
	log    []simulation.Operation
	steps  int
	cutAt  int
	failAt map[int]error
	cut    bool
}

// Faults are what goes wrong beside what the Script of the machine says.
type Faults struct {
	// Before is asked before each operation that changes something. Its error is the operation's, which does nothing.
	Before func(simulation.Operation) error
	// After is asked when such an operation is done. Its error is the operation's, as when the answer gets lost.
	After func(simulation.Operation) error
	// DiskBytes is how much the disk holds; 0 is without bounds.
	DiskBytes int64
}

var _ applier.Host = (*Memory)(nil)

// Facts are those of an ordinary machine.
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

// NewMemory returns a machine with an empty drive that says facts of itself.
func NewMemory(facts bundle.Facts, clock *Clock) *Memory {
	m := &Memory{
		state:  simulation.NewState(facts, clock.Now()),
		names:  map[string]name{},
		cutAt:  -1,
		failAt: map[int]error{},
	}
	m.Machine = &simulation.Machine{
		Mutex: &m.mu, Store: memoryStore{m}, Own: ownStore{m}, Files: memoryFiles{m}, Now: clock.Now, Begin: m.begin, End: m.end,
	}
	return m
}

// Lock implements applier.Host. It does not wait.
func (m *Memory) Lock(ctx context.Context, owner string) (func() error, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case m.cut:
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
	if m.cut {
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

// Steps counts what was changed so far. One operation may take several steps: a Write first leaves half a file under
// applier.NewName, then a whole one, then moves a program that runs aside, then has the new one take the place.
func (m *Memory) Steps() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.steps
}

// CutAt kills the applier's process before the n-th step from now, 0 being the next: that step and everything later gives
// ErrCut until Revive.
func (m *Memory) CutAt(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cutAt = m.steps + n
}

// FailAt lets the n-th step from now, 0 being the next, give err instead of its effect.
func (m *Memory) FailAt(n int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failAt[m.steps+n] = err
}

// Cut tells whether the process is dead.
func (m *Memory) Cut() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cut
}

// Revive lets a new process work on the machine: no cut is due, and the lock of the old one is gone with it.
func (m *Memory) Revive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut, m.cutAt, m.owner = false, -1, ""
}

// begin tells of an operation. The caller holds mu.
func (m *Memory) begin(op simulation.Operation) error {
	if m.cut {
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

// step comes before every effect.
func (m *Memory) step() error {
	if m.cut || m.steps == m.cutAt {
		m.cut = true
		return ErrCut
	}
	err := m.failAt[m.steps]
	delete(m.failAt, m.steps)
	m.steps++
	return err
}

// memoryStore keeps the state of the simulation.
type memoryStore struct{ *Memory }

func (s memoryStore) Load() (*simulation.State, error) {
	if s.cut {
		return nil, ErrCut
	}
	return s.state.Clone(), nil
}

func (s memoryStore) Save(state *simulation.State) error {
	if err := s.step(); err != nil {
		return err
	}
	s.state = state.Clone()
	return nil
}

// ownStore keeps what happens without the applier: no step of it, and no cut.
type ownStore struct{ *Memory }

func (s ownStore) Load() (*simulation.State, error) { return s.state.Clone(), nil }

func (s ownStore) Save(state *simulation.State) error {
	s.state = state.Clone()
	return nil
}

// Snapshot returns what the whole machine is, also after a cut.
func (m *Memory) Snapshot() simulation.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	files := map[string]simulation.FileSnapshot{}
	for folded, n := range m.names {
		f := simulation.FileSnapshot{Kind: n.kind, Access: n.access}
		if n.kind == applier.FileRegular {
			f.Digest = bundle.Of(n.data)
		}
		files[m.spelled(folded)] = f
	}
	return m.state.Settled().Snapshot(files)
}

// spelled is a path in the case in which its names were made.
func (m *Memory) spelled(folded string) string {
	n, ok := m.names[folded]
	if !ok {
		return simulation.Drive[:2]
	}
	return m.spelled(parent(folded)) + `\` + n.base
}

// Copy returns a machine of its own that is what this one is: files, services, settings. It has no faults and no log.
func (m *Memory) Copy(clock *Clock) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := NewMemory(bundle.Facts{}, clock)
	c.state, c.serial = m.state.Clone(), m.serial
	copies := map[*node]*node{}
	for folded, n := range m.names {
		if copies[n.node] == nil {
			same := *n.node
			copies[n.node] = &same
		}
		c.names[folded] = name{base: n.base, node: copies[n.node]}
	}
	return c
}

// memoryFiles is what the simulation sees of the files.
type memoryFiles struct{ *Memory }

func (f memoryFiles) ReadFile(path string) ([]byte, error) {
	n, ok := f.names[bundle.FoldPath(path)]
	if !ok || n.kind != applier.FileRegular {
		return nil, simulation.ErrFileNotFound
	}
	return n.data, nil
}

func (f memoryFiles) FileID(path string) (string, error) {
	n, ok := f.names[bundle.FoldPath(path)]
	if !ok || n.kind != applier.FileRegular {
		return "", nil
	}
	return n.id, nil
}

// Epoch is when the clocks of tests start.
func Epoch() time.Time { return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC) }

// used is how many bytes the files hold.
func (m *Memory) used() int64 {
	seen := map[*node]bool{}
	for n := range maps.Values(m.names) {
		seen[n.node] = true
	}
	var sum int64
	for n := range seen {
		sum += int64(len(n.data))
	}
	return sum
}
