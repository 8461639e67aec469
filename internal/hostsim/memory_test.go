package hostsim

import (
	"testing"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/bundle"
)

func TestMemoryContract(t *testing.T) {
	t.Parallel()
	Contract(t, func(*testing.T) Fixture { return newMemoryFixture() }, nil)
}

// memoryFixture is a Memory with every capability.
type memoryFixture struct {
	Simulated
	memory *Memory
}

func newMemoryFixture() memoryFixture {
	m := NewMemory(Facts(), NewClock(Epoch()))
	m.PlaceFolder(`C:\k`)
	return memoryFixture{
		memory: m,
		Simulated: Simulated{
			Simulation: m.Host,
			Open:       func(testing.TB) applier.Host { return m },
			Root:       `C:\k`,
		},
	}
}

// MakeReadOnly does nothing: a disk in memory has no such attribute.
func (m memoryFixture) MakeReadOnly(testing.TB, string) {}

func (m memoryFixture) MakeLink(_ testing.TB, path, _ string) { m.memory.PlaceLink(path) }

func (m memoryFixture) OpenToAll(_ testing.TB, path string) {
	m.memory.Place(path, plan.AccessOther, "text")
}

func (m memoryFixture) PlantFolder(_ testing.TB, path string) { m.memory.PlantFolder(path) }

func (m memoryFixture) UsersRead(t testing.TB, path string) bool {
	infos, err := m.memory.Stat(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	return infos[0].Access != bundle.AccessAdmins
}

func (m memoryFixture) AbandonLock(t testing.TB, owner string) {
	if _, err := m.memory.Lock(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	m.memory.Revive()
}
