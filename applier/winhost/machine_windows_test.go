package winhost

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"wmco/applier/selftest"
	"wmco/bundle"
)

func ptr[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// newHost returns this host.
func newHost() *Host { return New(Options{Wine: isWine()}) }

// isWine reports whether Wine is in the place of Windows (gitlab.winehq.org/wine/wine/-/wikis/Developer-FAQ).
func isWine() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}

// quick returns this host with short limits for programs that hang on purpose. The other limits are the default: the host is
// busy with other tests.
func quick() *Host {
	h := newHost()
	h.Limits.Start, h.Limits.Stop, h.Limits.Exit = 30*time.Second, 5*time.Second, 5*time.Second
	h.Limits.Delete, h.Limits.Poll = 3*time.Second, 10*time.Millisecond
	return h
}

// machineFolder is the folder of these tests.
const machineFolder = `C:\wmco-winhost`

// machine is this host, with what other programs do to it.
type machine struct{ folder string }

// Folder is empty at the beginning of a test.
func (m machine) Folder() string { return m.folder }

// newMachine creates an empty folder for a test.
func newMachine(t *testing.T) machine {
	for _, f := range []string{machineFolder, folderSeen} {
		if err := os.RemoveAll(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := quick().MakeDirectory(t.Context(), machineFolder, bundle.AccessUsers); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folderSeen, 0o755); err != nil {
		t.Fatal(err)
	}
	return machine{machineFolder}
}

func (m machine) HoldOpen(t testing.TB, path string) (release func()) {
	t.Helper()
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := windows.CreateFile(name, windows.GENERIC_READ, 0, nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = windows.CloseHandle(file) }
}

func (m machine) Seen(t testing.TB, service string) selftest.Seen {
	t.Helper()
	states, err := quick().Services(t.Context(), []string{service})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(folderSeen, strconv.Itoa(states[0].Process)))
	if err != nil {
		t.Fatal(err)
	}
	var seen selftest.Seen
	if err := json.Unmarshal(data, &seen); err != nil {
		t.Fatal(err)
	}
	return seen
}

func (m machine) HoldService(t testing.TB, name string) (release func()) {
	t.Helper()
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		t.Fatal(err)
	}
	scm, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	if err != nil {
		t.Fatal(err)
	}
	service, err := windows.OpenService(scm, text, windows.SERVICE_QUERY_STATUS)
	if err = errors.Join(err, windows.CloseServiceHandle(scm)); err != nil {
		t.Fatal(err)
	}
	return func() { _ = windows.CloseServiceHandle(service) }
}
