package winhost

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"wmco/applier"
	"wmco/applier/winhost/settings"
	"wmco/bundle"
	"wmco/internal/hostsim"
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

// machineFolder is the folder of the contract and of other tests.
const machineFolder = `C:\wmco-contract`

// machine is this host for one clause of the contract.
type machine struct{ folder string }

func (m machine) Host(testing.TB) applier.Host { return quick() }

func (m machine) Folder() string { return m.folder }

// newMachine creates an empty folder for a clause.
func newMachine(t *testing.T) hostsim.Fixture {
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

func (m machine) MakeReadOnly(t testing.TB, path string) {
	t.Helper()
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
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

func (m machine) RunProgram(t testing.TB, path string) (end func()) {
	t.Helper()
	install(t, path, playsWaiter)
	program := exec.Command(path)
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	// Until it prints a line, Windows may not have loaded its file yet.
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	end = func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	}
	t.Cleanup(end)
	return end
}

// PlantFolder gives the folder to Users. An administrator may do that with SeRestorePrivilege
// (learn.microsoft.com/windows/win32/secauthz/taking-object-ownership-in-c--, winnt privilege constants).
func (m machine) PlantFolder(t testing.TB, path string) {
	t.Helper()
	restore(t)
	sd, err := windows.SecurityDescriptorFromString("O:BUD:(A;OICI;FA;;;BU)(A;OICI;FA;;;BA)")
	if err != nil {
		t.Fatal(err)
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		t.Fatal(err)
	}
	sa := &windows.SecurityAttributes{Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})), SecurityDescriptor: sd}
	if err := windows.CreateDirectory(name, sa); err != nil {
		t.Fatal(err)
	}
}

// restore enables SeRestorePrivilege in this process.
func restore(t testing.TB) {
	t.Helper()
	name, err := windows.UTF16PtrFromString("SeRestorePrivilege")
	if err != nil {
		t.Fatal(err)
	}
	privileges := windows.Tokenprivileges{PrivilegeCount: 1}
	privileges.Privileges[0].Attributes = windows.SE_PRIVILEGE_ENABLED
	if err := windows.LookupPrivilegeValue(nil, name, &privileges.Privileges[0].Luid); err != nil {
		t.Fatal(err)
	}
	var token windows.Token
	if err := windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES|windows.TOKEN_QUERY, &token); err != nil {
		t.Fatal(err)
	}
	defer token.Close()
	if err := windows.AdjustTokenPrivileges(token, false, &privileges, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
}

func (m machine) InstallProgram(t testing.TB, path string, program hostsim.Program) {
	t.Helper()
	install(t, path, program)
}

func (m machine) Seen(t testing.TB, service string) hostsim.Seen {
	t.Helper()
	states, err := quick().Services(t.Context(), []string{service})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(folderSeen, strconv.Itoa(states[0].Process)))
	if err != nil {
		t.Fatal(err)
	}
	var seen hostsim.Seen
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

func (m machine) AbandonLock(t testing.TB, owner string) {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dying := exec.Command(own)
	dying.Env = append(os.Environ(), asLock+"="+owner)
	if out, err := dying.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func (m machine) AddCertificate(t testing.TB, der []byte) {
	t.Helper()
	if err := (settings.RootStore{}).AddRoot(der); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := (settings.RootStore{}).RemoveRoot(der); err != nil {
			t.Error(err)
		}
	})
}

func (m machine) HasCertificate(t testing.TB, der []byte) bool {
	t.Helper()
	all, err := (settings.RootStore{}).TrustedRoots()
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(have []byte) bool { return string(have) == string(der) })
}

func (m machine) Answer(t testing.TB, kind bundle.ProbeKind) (bundle.Probe, func()) {
	t.Helper()
	if kind == bundle.ProbePipe {
		return pipeServer(t)
	}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if kind == bundle.ProbeHTTP {
		return bundle.Probe{Kind: kind, Target: server.URL}, server.Close
	}
	return bundle.Probe{Kind: kind, Target: server.Listener.Addr().(*net.TCPAddr).String()}, server.Close
}

func pipeServer(t testing.TB) (bundle.Probe, func()) {
	t.Helper()
	const name = `\\.\pipe\wmco-contract`
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := windows.CreateNamedPipe(text, windows.PIPE_ACCESS_DUPLEX, windows.PIPE_TYPE_BYTE, 1, 512, 512, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Probe{Kind: bundle.ProbePipe, Target: name}, func() { _ = windows.CloseHandle(pipe) }
}

// notOnWine has the clauses that Wine 10 does not pass, each with what Wine lacks and what tests the clause instead.
func notOnWine() map[string]string {
	const (
		links    = "Wine cannot create links; TestLinks has links that Linux created"
		access   = "Wine keeps only what fits into the mode of a Linux file; files.TestAccessOf, and internal/test/winetest checks the modes"
		depends  = "the service manager of Wine ignores dependencies; the host in memory of hostsim"
		boot     = "a boot ends this program; TestBoot"
		hns      = "Wine has no HNS; networks.TestEndpoints"
		firewall = "the firewall object of Wine has no members; settings.TestFirewall"
		defender = "Wine has no Defender; settings.TestExclusions"
		dism     = "Wine has no DISM; settings.TestFeatures"
		routes   = "Wine has no function that changes routes; networks.TestRoutes"
	)
	return map[string]string{
		"a symbolic link or junction is neither file nor folder and is not followed": links,
		"removing a symbolic link or junction keeps its target":                      links,
		"neither a file nor a folder replaces a symbolic link or junction":           links,
		"users read files for users and not those for administrators":                access,
		"users never read a secret, not even while it replaces a public file":        access,
		"a file that everybody may write to has access other":                        access,
		"what another user made is that user's until MakeDirectory takes it":         access,
		"what another user made stays that user's when it is moved":                  access,
		"the folder of the lock is refused while another user owns it":               access,
		"a folder in which a program runs is not moved":                              "Wine renames a folder in which files are open",
		"the dependencies of a service are started first":                            depends,
		"a service with a missing or failing dependency does not start":              depends,
		"the running dependents of a service are listed, indirect ones too":          depends,
		"a service with running dependents is not stopped":                           depends,
		"a service cannot depend on itself":                                          depends,
		"services with automatic start and their dependencies are started at boot":   boot,
		"the boot time changes with a boot":                                          boot,
		"a new host name takes effect with the next boot":                            boot,
		"a Windows feature takes effect with the next boot":                          boot,
		"a pending Windows feature is withdrawn without a boot":                      dism,
		"an HNS endpoint is made and removed":                                        hns,
		"an HNS network is removed and never made":                                   hns,
		"a firewall rule is set, changed and removed":                                firewall,
		"an exclusion is set and removed where Defender runs":                        defender,
		"a route is set, changed and removed":                                        routes,
		"a route to the next hop of the default route is read as via default":        routes,
		"a service gets its arguments unchanged":                                     "Windows too expands %NAME% in the command line of a service; TestArgumentsOfServices has the other arguments",
		"a service gets its environment":                                             "Wine ignores the Environment value of a service; another clause reads it back",
	}
}

func TestContract(t *testing.T) {
	anchorRoots(t)
	skips := map[string]string{}
	if isWine() {
		skips = notOnWine()
	}
	const full = "a full drive C: would stop other programs of this computer; files.TestReasonOfAFileError has the errors of Windows"
	skips["a file takes its room, and gives it back when it is removed"] = full
	skips["a file for which there is no room changes nothing and leaves no file"] = full
	hostsim.Contract(t, newMachine, skips)
}
