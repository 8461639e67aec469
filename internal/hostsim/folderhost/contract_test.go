//go:build unix

package folderhost

import (
	"testing"

	"wmco/applier/selftest"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/fixtures"
)

func TestFolderHostContract(t *testing.T) {
	t.Parallel()
	hostsim.Contract(t, func(t *testing.T) selftest.Fixture { return newFixture(t) }, fixtures.Skips())
}

// folderFixture is a Machine that can also have a lock abandoned.
type folderFixture struct {
	Machine
	t testing.TB
}

func newFixture(t testing.TB) folderFixture {
	t.Helper()
	root := t.TempDir()
	create(t, root)
	m := NewMachine(root, Options{Now: hostsim.NewClock(hostsim.Epoch()).Now})
	if err := m.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return folderFixture{m, t}
}

func create(t testing.TB, root string) *Host {
	t.Helper()
	h, err := Create(root, Options{Facts: hostsim.Facts(), Now: hostsim.NewClock(hostsim.Epoch()).Now})
	return opened(t, h, err)
}

// reopen opens the host as another process does.
func reopen(t testing.TB, root string) *Host {
	t.Helper()
	h, err := New(root, Options{Now: hostsim.NewClock(hostsim.Epoch()).Now})
	return opened(t, h, err)
}

func opened(t testing.TB, h *Host, err error) *Host {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (m folderFixture) AbandonLock(t selftest.T, owner string) {
	kill := other(m.t, m.root, owner)
	h := m.openHost(t)
	if _, err := h.Lock(t.Context(), "too early"); err == nil {
		t.Error("the lock of a running process was taken")
	}
	kill()
}
