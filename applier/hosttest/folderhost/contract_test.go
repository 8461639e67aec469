//go:build unix

package folderhost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wmco/applier"
	"wmco/applier/hosttest"
	"wmco/applier/hosttest/simulation"
	"wmco/bundle"
)

func TestAFolderKeepsTheContract(t *testing.T) {
	t.Parallel()
	hosttest.Contract(t, func(t *testing.T) hosttest.Fixture { return newMachine(t) }, nil)
}

// folderMachine is a Host with every capability.
type folderMachine struct {
	hosttest.Simulated
	root string
}

func newMachine(t testing.TB) folderMachine {
	t.Helper()
	root := t.TempDir()
	h := create(t, root)
	if err := h.MakeDirectory(t.Context(), `C:\k`, bundle.AccessUsers); err != nil {
		t.Fatal(err)
	}
	return folderMachine{
		root: root,
		Simulated: hosttest.Simulated{
			Simulation: h.Host,
			Open:       func(t testing.TB) applier.Host { return reopen(t, root) },
			Root:       `C:\k`,
		},
	}
}

func create(t testing.TB, root string) *Host {
	t.Helper()
	h, err := Create(root, Options{Facts: hosttest.Facts(), Now: hosttest.NewClock(hosttest.Epoch()).Now})
	return opened(t, h, err)
}

// reopen is what another process does.
func reopen(t testing.TB, root string) *Host {
	t.Helper()
	h, err := New(root, Options{Now: hosttest.NewClock(hosttest.Epoch()).Now})
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

// local is the path of a Windows path here.
func (m folderMachine) local(path string) string {
	return filepath.Join(m.root, "C", filepath.FromSlash(strings.ReplaceAll(path[len(simulation.Drive):], `\`, "/")))
}

func (m folderMachine) MakeReadOnly(t testing.TB, path string) {
	info, err := os.Stat(m.local(path))
	if err == nil {
		err = os.Chmod(m.local(path), info.Mode().Perm()&^0o222)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (m folderMachine) MakeLink(t testing.TB, path, folder string) {
	if err := os.Symlink(m.local(folder), m.local(path)); err != nil {
		t.Fatal(err)
	}
}

func (m folderMachine) OpenToAll(t testing.TB, path string) {
	err := os.WriteFile(m.local(path), nil, 0o600)
	if err == nil {
		err = os.Chmod(m.local(path), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (m folderMachine) UsersRead(t testing.TB, path string) bool {
	info, err := os.Stat(m.local(path))
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()&0o004 != 0
}

func (m folderMachine) AbandonLock(t testing.TB, owner string) {
	kill := other(t, m.root, owner)
	h := reopen(t, m.root)
	if _, err := h.Lock(t.Context(), "too early"); err == nil {
		t.Error("the lock of a living process was taken")
	}
	kill()
}
