package hosttest

import (
	"testing"

	"wmco/applier"
	"wmco/bundle"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	Contract(t, func(*testing.T) Fixture { return newMemoryMachine() }, nil)
}

// memoryMachine is a Memory with every capability.
type memoryMachine struct {
	Simulated
	memory *Memory
}

func newMemoryMachine() memoryMachine {
	m := NewMemory(Facts(), NewClock(Epoch()))
	m.PlaceFolder(`C:\k`)
	return memoryMachine{
		memory: m,
		Simulated: Simulated{
			Simulation: m.Host,
			Open:       func(testing.TB) applier.Host { return m },
			Root:       `C:\k`,
		},
	}
}

// MakeReadOnly does nothing: to a host, no file is read-only.
func (m memoryMachine) MakeReadOnly(testing.TB, string) {}

func (m memoryMachine) MakeLink(_ testing.TB, path, _ string) { m.memory.PlaceLink(path) }

func (m memoryMachine) OpenToAll(_ testing.TB, path string) {
	m.memory.Place(path, applier.AccessOther, "text")
}

func (m memoryMachine) UsersRead(t testing.TB, path string) bool {
	infos, err := m.memory.Stat(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	return infos[0].Access != bundle.AccessAdmins
}

func (m memoryMachine) AbandonLock(t testing.TB, owner string) {
	if _, err := m.memory.Lock(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	m.memory.Revive()
}
