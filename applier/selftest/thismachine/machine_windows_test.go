package thismachine

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/windows"

	"wmco/applier/plan"
	"wmco/applier/selftest"
	"wmco/bundle"
	"wmco/internal/hostsim"
)

func TestMain(m *testing.M) {
	if played, status := Play(); played {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// isWine reports whether Wine is in the place of Windows (gitlab.winehq.org/wine/wine/-/wikis/Developer-FAQ).
func isWine() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}

// TestContract tests the contract on this Windows.
func TestContract(t *testing.T) {
	anchorRoots(t)
	m := Machine{Wine: isWine()}
	t.Cleanup(func() {
		if _, err := m.Clean(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	hostsim.Contract(t, func(t *testing.T) selftest.Fixture {
		if err := m.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		return m
	}, m.Skips())
}

// TestCleanRemovesWhatAnEndedRunHasLeft leaves programs, services, settings, CAs and files behind.
func TestCleanRemovesWhatAnEndedRunHasLeft(t *testing.T) {
	anchorRoots(t)
	m := Machine{Wine: isWine()}
	if err := m.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := []string{
		"a service that hangs while it stops is killed", "a trusted CA is added and removed", "a variable is set, changed and removed",
		"setting the current host name is no change", "a running program is removed by moving it aside until it ends", "a read-only file is replaced and removed",
		"unmanaged trusted CAs stay", "the lock of a process that has ended is free", "names of services are case-insensitive",
	}
	for _, part := range selftest.Parts() {
		for _, c := range part.Clauses {
			for _, name := range left {
				if c.Name == name {
					c.Test(&ended{t}, m)
				}
			}
		}
	}
	own := renameComputer(t, m)
	removed, err := m.Clean(t.Context())
	if err != nil || len(removed) < 4 || !slices.Contains(removed, "host name "+selftest.HostName) {
		t.Errorf("removed %q: %v", removed, err)
	}
	if got := computerName(t, m); got != own {
		t.Errorf("the computer has the name %+v, want %+v", got, own)
	}
	again, err := m.Clean(t.Context())
	if err != nil || len(again) > 0 {
		t.Errorf("the second time it removed %q: %v", again, err)
	}
	if _, err := os.Stat(selftest.Root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there: %v", selftest.Root, err)
	}
}

// renameComputer asks for another name of the computer, as the process of a clause does that ends before it gives the name back. It returns
// what there was before.
func renameComputer(t *testing.T, m Machine) (before plan.Setting) {
	t.Helper()
	before = computerName(t, m)
	other := before
	other.Value = selftest.HostName
	if err := m.host().Set(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if got := computerName(t, m); got.Value != selftest.HostName || !got.Pending {
		t.Fatalf("the computer has the name %+v", got)
	}
	return before
}

func computerName(t *testing.T, m Machine) plan.Setting {
	t.Helper()
	have, err := m.host().Settings(t.Context(), []plan.Setting{{Kind: bundle.KindHostName, Name: bundle.Computer}})
	if err != nil {
		t.Fatal(err)
	}
	return have[0]
}

// TestWhatWineDoesNotPassSaysWhatWindowsDoes: a result of a real Windows is compared with a promise that has a source.
func TestWhatWineDoesNotPassSaysWhatWindowsDoes(t *testing.T) {
	for clause, g := range notOnWine() {
		if g.lacks == "" || !strings.HasPrefix(g.windows, "learn.microsoft.com/") && !strings.HasPrefix(g.windows, "no page says it") {
			t.Errorf("%s: %+v", clause, g)
		}
	}
}

// ended is a clause whose process ends before it cleans up.
type ended struct{ testing.TB }

// Cleanup calls nothing.
func (*ended) Cleanup(func()) {}

// anchorRoots keeps the root store of Wine. When a process opens the store, Wine replaces all roots by those of Linux, unless
// another process has this semaphore open.
func anchorRoots(t testing.TB) {
	t.Helper()
	create := windows.NewLazySystemDLL("kernel32.dll").NewProc("CreateSemaphoreW")
	handle, _, err := create.Call(0, 0, 1, pointer(wide(t, "crypt32_root_semaphore")))
	if handle == 0 {
		t.Fatal(err)
	}
	if !errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		release := windows.NewLazySystemDLL("kernel32.dll").NewProc("ReleaseSemaphore")
		if ok, _, err := release.Call(handle, 1, 0); ok == 0 {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = windows.CloseHandle(windows.Handle(handle)) })
}
