//go:build unix

package folderhost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/bundle"
	"wmco/internal/hostsim"
	"wmco/internal/hostsim/simulation"
)

func TestFolderHostContract(t *testing.T) {
	t.Parallel()
	hostsim.Contract(t, func(t *testing.T) hostsim.Fixture { return newFixture(t) }, nil)
}

// folderFixture is a Host with every capability.
type folderFixture struct {
	hostsim.Simulated
	root string
}

func newFixture(t testing.TB) folderFixture {
	t.Helper()
	root := t.TempDir()
	h := create(t, root)
	if err := h.MakeDirectory(t.Context(), `C:\k`, bundle.AccessUsers); err != nil {
		t.Fatal(err)
	}
	return folderFixture{
		root: root,
		Simulated: hostsim.Simulated{
			Simulation: h.Host,
			Open:       func(t testing.TB) applier.Host { return reopen(t, root) },
			Root:       `C:\k`,
		},
	}
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

// local returns the path of a Windows path on this system.
func (m folderFixture) local(path string) string {
	return filepath.Join(m.root, "C", filepath.FromSlash(strings.ReplaceAll(path[len(simulation.Drive):], `\`, "/")))
}

func (m folderFixture) MakeReadOnly(t testing.TB, path string) {
	info, err := os.Stat(m.local(path))
	if err == nil {
		err = os.Chmod(m.local(path), info.Mode().Perm()&^0o222)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (m folderFixture) MakeLink(t testing.TB, path, folder string) {
	if err := os.Symlink(m.local(folder), m.local(path)); err != nil {
		t.Fatal(err)
	}
}

func (m folderFixture) OpenToAll(t testing.TB, path string) {
	err := os.WriteFile(m.local(path), nil, 0o600)
	if err == nil {
		err = os.Chmod(m.local(path), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (m folderFixture) PlantFolder(t testing.TB, path string) {
	err := os.MkdirAll(m.local(path), 0o755)
	if err == nil {
		err = os.Chmod(m.local(path), 0o755|foreign)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (m folderFixture) UsersRead(t testing.TB, path string) bool {
	info, err := os.Stat(m.local(path))
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()&0o004 != 0
}

func (m folderFixture) AbandonLock(t testing.TB, owner string) {
	kill := other(t, m.root, owner)
	h := reopen(t, m.root)
	if _, err := h.Lock(t.Context(), "too early"); err == nil {
		t.Error("the lock of a running process was taken")
	}
	kill()
}
