package thismachine

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/Microsoft/hnslib"
	"golang.org/x/sys/windows"

	"wmco/applier/selftest"
	"wmco/applier/winhost/settings"
	"wmco/bundle"
)

func pointer[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

func check(t selftest.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wide(t selftest.T, text string) *uint16 {
	t.Helper()
	p, err := windows.UTF16PtrFromString(text)
	check(t, err)
	return p
}

// clearReadOnly takes the attribute from all files below a folder: os.RemoveAll does not remove them.
func clearReadOnly(folder string) {
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Type().IsRegular() {
			_ = os.Chmod(path, 0o666) // what cannot be changed fails the removal
		}
		return nil
	})
}

// MakeReadOnly implements selftest.OtherPrograms.
func (Machine) MakeReadOnly(t selftest.T, path string) {
	t.Helper()
	check(t, os.Chmod(path, 0o444))
}

// HoldOpen implements selftest.OtherPrograms.
func (Machine) HoldOpen(t selftest.T, path string) (release func()) {
	t.Helper()
	file, err := windows.CreateFile(wide(t, path), windows.GENERIC_READ, 0, nil, windows.OPEN_EXISTING, 0, 0)
	check(t, err)
	return func() { _ = windows.CloseHandle(file) }
}

// MakeLink implements selftest.LinkMaker. Administrators may create symbolic links
// (learn.microsoft.com/windows/security/threat-protection/security-policy-settings/create-symbolic-links).
func (Machine) MakeLink(t selftest.T, path, folder string) {
	t.Helper()
	check(t, os.Symlink(folder, path))
}

// create makes a file or folder with a security descriptor in SDDL.
func create(t selftest.T, sddl string, with func(*windows.SecurityAttributes) error) {
	t.Helper()
	sd, err := windows.SecurityDescriptorFromString(sddl)
	check(t, err)
	check(t, with(&windows.SecurityAttributes{Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})), SecurityDescriptor: sd}))
}

// PlantFolder gives the folder to Users. With SeRestorePrivilege an administrator may make any user or group the owner
// (learn.microsoft.com/windows/win32/secauthz/owner-of-a-new-object).
func (Machine) PlantFolder(t selftest.T, path string) {
	t.Helper()
	check(t, enablePrivilege("SeRestorePrivilege"))
	create(t, "O:BUD:(A;OICI;FA;;;BU)(A;OICI;FA;;;BA)", func(sa *windows.SecurityAttributes) error {
		return windows.CreateDirectory(wide(t, path), sa)
	})
}

// OpenToAll implements selftest.AccessOpener.
func (Machine) OpenToAll(t selftest.T, path string) {
	t.Helper()
	create(t, "O:BAD:(A;;FA;;;WD)", func(sa *windows.SecurityAttributes) error {
		file, err := windows.CreateFile(wide(t, path), windows.GENERIC_WRITE, 0, sa, windows.CREATE_NEW, windows.FILE_ATTRIBUTE_NORMAL, 0)
		if err != nil {
			return err
		}
		return windows.CloseHandle(file)
	})
}

// enablePrivilege enables a privilege of this process.
func enablePrivilege(privilege string) error {
	name, err := windows.UTF16PtrFromString(privilege)
	if err != nil {
		return err
	}
	privileges := windows.Tokenprivileges{PrivilegeCount: 1}
	privileges.Privileges[0].Attributes = windows.SE_PRIVILEGE_ENABLED
	if err := windows.LookupPrivilegeValue(nil, name, &privileges.Privileges[0].Luid); err != nil {
		return err
	}
	var token windows.Token
	if err := windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES|windows.TOKEN_QUERY, &token); err != nil {
		return err
	}
	return errors.Join(windows.AdjustTokenPrivileges(token, false, &privileges, 0, nil, nil), token.Close())
}

// UsersRead asks Windows itself which rights the access control list gives to Users
// (learn.microsoft.com/windows/win32/api/aclapi/nf-aclapi-geteffectiverightsfromaclw).
func (Machine) UsersRead(t selftest.T, path string) bool {
	t.Helper()
	sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	check(t, err)
	acl, _, err := sd.DACL()
	check(t, err)
	users, err := windows.CreateWellKnownSid(windows.WinBuiltinUsersSid)
	check(t, err)
	trustee := windows.TRUSTEE{TrusteeForm: windows.TRUSTEE_IS_SID, TrusteeType: windows.TRUSTEE_IS_GROUP,
		TrusteeValue: windows.TrusteeValueFromSID(users)}
	var rights uint32
	call := windows.NewLazySystemDLL("advapi32.dll").NewProc("GetEffectiveRightsFromAclW")
	if code, _, _ := call.Call(pointer(acl), pointer(&trustee), pointer(&rights)); code != 0 {
		t.Fatal(windows.Errno(code))
	}
	return rights&windows.FILE_READ_DATA != 0
}

// Seen implements selftest.ServiceInstaller.
func (m Machine) Seen(t selftest.T, service string) selftest.Seen {
	t.Helper()
	states, err := m.host().Services(t.Context(), []string{service})
	check(t, err)
	data, err := os.ReadFile(filepath.Join(folderSeen, strconv.Itoa(states[0].Process)))
	check(t, err)
	var seen selftest.Seen
	check(t, json.Unmarshal(data, &seen))
	return seen
}

// CrashService implements selftest.ServiceCrasher.
func (m Machine) CrashService(t selftest.T, name string) (restart func()) {
	t.Helper()
	id, err := m.host().ServiceProcess(t.Context(), name)
	check(t, err)
	process, err := os.FindProcess(id)
	check(t, err)
	check(t, errors.Join(process.Kill(), process.Release()))
	return func() {}
}

// MakeFile implements selftest.FileMaker.
func (Machine) MakeFile(t selftest.T, path string) {
	t.Helper()
	check(t, os.WriteFile(path, nil, 0o600)) // Windows takes no access from the mode
}

// HoldService implements selftest.ServiceHolder.
func (Machine) HoldService(t selftest.T, name string) (release func()) {
	t.Helper()
	scm, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	check(t, err)
	service, err := windows.OpenService(scm, wide(t, name), windows.SERVICE_QUERY_STATUS)
	check(t, errors.Join(err, windows.CloseServiceHandle(scm)))
	return func() { _ = windows.CloseServiceHandle(service) }
}

// AddCertificate implements selftest.CertificateKeeper.
func (Machine) AddCertificate(t selftest.T, der []byte) {
	t.Helper()
	check(t, (settings.RootStore{}).AddRoot(der))
	t.Cleanup(func() {
		if err := (settings.RootStore{}).RemoveRoot(der); err != nil {
			t.Error(err)
		}
	})
}

// HasCertificate implements selftest.CertificateKeeper.
func (Machine) HasCertificate(t selftest.T, der []byte) bool {
	t.Helper()
	all, err := (settings.RootStore{}).TrustedRoots()
	check(t, err)
	return slices.ContainsFunc(all, func(have []byte) bool { return string(have) == string(der) })
}

// MakeNetwork makes an HNS network of type Internal, which no adapter of the machine is a part of. Its addresses are
// TEST-NET-2, which no network uses (RFC 5737).
func (Machine) MakeNetwork(t selftest.T) string {
	t.Helper()
	if windows.NewLazySystemDLL("vmcompute.dll").NewProc("HNSCall").Find() != nil {
		t.Skip("this Windows has no Host Networking Service: the feature Containers is off")
	}
	network := hnslib.HNSNetwork{
		Name: selftest.NetworkName, Type: "Internal",
		Subnets: []hnslib.Subnet{{AddressPrefix: "198.51.100.0/24", GatewayAddress: "198.51.100.1"}},
	}
	made, err := network.Create()
	check(t, err)
	t.Cleanup(func() {
		// A clause may have removed it already.
		_, _ = made.Delete()
	})
	return selftest.NetworkName
}

// Answer implements selftest.Answerer.
func (Machine) Answer(t selftest.T, kind bundle.ProbeKind) (bundle.Probe, func()) {
	t.Helper()
	if kind == bundle.ProbePipe {
		return pipeServer(t)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // it ends when the server is closed
	address := listener.Addr().String()
	if kind == bundle.ProbeHTTP {
		address = "http://" + address
	}
	return bundle.Probe{Kind: kind, Target: address}, func() { _ = server.Close() }
}

func pipeServer(t selftest.T) (bundle.Probe, func()) {
	t.Helper()
	pipe, err := windows.CreateNamedPipe(wide(t, selftest.PipeName), windows.PIPE_ACCESS_DUPLEX, windows.PIPE_TYPE_BYTE, 1, 512, 512, 0, nil)
	check(t, err)
	return bundle.Probe{Kind: bundle.ProbePipe, Target: selftest.PipeName}, func() { _ = windows.CloseHandle(pipe) }
}
