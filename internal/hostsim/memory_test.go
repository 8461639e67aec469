package hostsim

import (
	"testing"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/selftest"
	"wmco/bundle"
	"wmco/internal/hostsim/fixtures"
	"wmco/internal/hostsim/simulation"
)

func TestMemoryContract(t *testing.T) {
	t.Parallel()
	Contract(t, func(*testing.T) selftest.Fixture { return newMemoryFixture() }, fixtures.Skips())
}

// memoryFixture is a Memory with every capability.
type memoryFixture struct {
	fixtures.Simulated
	memory *Memory
}

func newMemoryFixture() memoryFixture {
	m := NewMemory(Facts(), NewClock(Epoch()))
	m.PlaceFolder(`C:\k`)
	return memoryFixture{
		memory: m,
		Simulated: fixtures.Simulated{
			Reach: func(selftest.T) *simulation.Host { return m.Host },
			Open:  func(selftest.T) applier.Host { return m },
			Root:  `C:\k`,
		},
	}
}

// MakeReadOnly does nothing: a disk in memory has no such attribute.
func (m memoryFixture) MakeReadOnly(selftest.T, string) {}

func (m memoryFixture) MakeLink(_ selftest.T, path, _ string) { m.memory.PlaceLink(path) }

func (m memoryFixture) OpenToAll(_ selftest.T, path string) {
	m.memory.Place(path, plan.AccessOther, "text")
}

func (m memoryFixture) MakeFile(t selftest.T, path string) {
	infos, err := m.memory.Stat(t.Context(), []string{bundle.Dir(path)})
	if err != nil {
		t.Fatal(err)
	}
	m.memory.Place(path, infos[0].Access, "text")
}

func (m memoryFixture) PlantFolder(_ selftest.T, path string) { m.memory.PlantFolder(path) }

func (m memoryFixture) UsersRead(t selftest.T, path string) bool {
	infos, err := m.memory.Stat(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	return infos[0].Access != bundle.AccessAdmins
}

func (m memoryFixture) AbandonLock(t selftest.T, owner string) {
	if _, err := m.memory.Lock(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	m.memory.Revive()
}
