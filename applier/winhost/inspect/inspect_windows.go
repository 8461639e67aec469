package inspect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"wmco/applier/winhost/hklm"
	"wmco/applier/winhost/networks"
	"wmco/applier/winhost/services"
	"wmco/preflight"
)

// System is this Windows.
type System struct{}

// Machine implements collect.System.
func (System) Machine(ctx context.Context, m *preflight.Machine) []error {
	var unread []error
	for _, part := range []struct {
		name string
		read func(context.Context, *preflight.Machine) error
	}{
		{"version of Windows", func(_ context.Context, m *preflight.Machine) error { return ReadVersion(m) }},
		{"FIPS mode", readFIPS},
		{"code integrity", readCodeIntegrity},
		{"AppLocker", readAppLocker},
		{"page file", readPageFile},
		{"network cards", readNetworkCards},
		{"ports", readPorts},
	} {
		if err := part.read(ctx, m); err != nil {
			unread = append(unread, fmt.Errorf("%s: %w", part.name, err))
		}
	}
	return unread
}

// currentVersion is the key with the version of Windows
// (learn.microsoft.com/windows-server/get-started/server-core-or-desktop, InstallationType).
const currentVersion = `SOFTWARE\Microsoft\Windows NT\CurrentVersion`

// ReadVersion sets the edition, the update and the locale of Windows.
func ReadVersion(m *preflight.Machine) (err error) {
	var failed error
	if m.Edition, _, err = hklm.ReadText(currentVersion, "EditionID"); err != nil {
		failed = err
	}
	if m.Installation, _, err = hklm.ReadText(currentVersion, "InstallationType"); err != nil {
		failed = errors.Join(failed, err)
	}
	update, err := readNumber(currentVersion, "UBR")
	m.Update = int(update) //nolint:gosec // a DWORD of a few thousand
	m.Locale = systemLocale()
	return errors.Join(failed, err)
}

// readNumber returns 0 for a value that does not exist.
func readNumber(path, value string) (number uint64, err error) {
	err = hklm.WithKey(path, registry.QUERY_VALUE, func(k registry.Key) (err error) {
		number, _, err = k.GetIntegerValue(value)
		return err
	})
	return number, hklm.IgnoreNotExist(err)
}

// systemLocale returns the name of the system's locale, such as en-US
// (learn.microsoft.com/windows/win32/api/winnls/nf-winnls-getsystemdefaultlocalename).
func systemLocale() string {
	buffer := make([]uint16, 85) // LOCALE_NAME_MAX_LENGTH
	call := windows.NewLazySystemDLL("kernel32.dll").NewProc("GetSystemDefaultLocaleName")
	if call.Find() != nil {
		return ""
	}
	if n, _, _ := call.Call(uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer))); n == 0 {
		return ""
	}
	return windows.UTF16ToString(buffer)
}

// readFIPS reads the policy "System cryptography: Use FIPS compliant algorithms"
// (learn.microsoft.com/windows/security/threat-protection/fips-140-validation).
func readFIPS(_ context.Context, m *preflight.Machine) error {
	enabled, err := readNumber(`SYSTEM\CurrentControlSet\Control\Lsa\FipsAlgorithmPolicy`, "Enabled")
	m.FIPS = enabled == 1
	return err
}

// SYSTEM_CODEINTEGRITY_INFORMATION and its option for programs of users
// (learn.microsoft.com/windows/win32/api/winternl/nf-winternl-ntquerysysteminformation,
// SystemCodeIntegrityInformation).
const (
	systemCodeIntegrity = 103
	// umciEnabled is CODEINTEGRITY_OPTION_UMCI_ENABLED, umciAudit is CODEINTEGRITY_OPTION_UMCI_AUDITMODE_ENABLED.
	umciEnabled = 0x04
	umciAudit   = 0x08
)

func readCodeIntegrity(_ context.Context, m *preflight.Machine) error {
	info := struct{ length, options uint32 }{length: 8}
	err := windows.NtQuerySystemInformation(systemCodeIntegrity, unsafe.Pointer(&info), uint32(unsafe.Sizeof(info)), nil)
	m.CodeIntegrity = err == nil && info.options&umciEnabled != 0 && info.options&umciAudit == 0
	return err
}

// readAppLocker reports rules for programs that are enforced: they are while the service AppIDSvc runs
// (learn.microsoft.com/windows/security/application-security/application-control/app-control-for-business/applocker/configure-the-application-identity-service).
func readAppLocker(_ context.Context, m *preflight.Machine) error {
	mode, err := readNumber(`SOFTWARE\Policies\Microsoft\Windows\SrpV2\Exe`, "EnforcementMode")
	if err != nil || mode != 1 {
		return err
	}
	m.AppLocker, err = services.IsRunning("AppIDSvc")
	return err
}

// readPageFile reads which page files Windows makes
// (learn.microsoft.com/troubleshoot/windows-client/performance/introduction-to-the-page-file).
func readPageFile(_ context.Context, m *preflight.Machine) error {
	var files []string
	err := hklm.WithKey(`SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management`, registry.QUERY_VALUE, func(k registry.Key) (err error) {
		files, _, err = k.GetStringsValue("PagingFiles")
		if errors.Is(err, registry.ErrUnexpectedType) { // Windows writes REG_MULTI_SZ, Wine REG_SZ
			var one string
			one, _, err = k.GetStringValue("PagingFiles")
			files = []string{one}
		}
		return err
	})
	for _, f := range files {
		m.PageFile = m.PageFile || f != ""
	}
	return hklm.IgnoreNotExist(err)
}

// readNetworkCards reads which addresses are static, and whether the Host Network Service makes network cards without a
// device (the existing operator's documentation of instances).
func readNetworkCards(_ context.Context, m *preflight.Machine) error {
	disabled, err := readNumber(`SYSTEM\CurrentControlSet\Services\hns\State`, "DeviceLessNicDisabled")
	m.DevicelessNICsDisabled = disabled == 1
	static, failed := networks.StaticAddresses()
	m.StaticAddresses = static
	return errors.Join(err, failed)
}

// readPorts listens on each port for a moment, on the address of its service: Windows lets one program listen on all
// addresses and another on one of them
// (learn.microsoft.com/windows/win32/winsock/using-so-reuseaddr-and-so-exclusiveaddruse). A port of an excluded range
// is refused with WSAEACCES, one that a program has with WSAEADDRINUSE
// (learn.microsoft.com/windows/win32/winsock/windows-sockets-error-codes-2).
func readPorts(ctx context.Context, m *preflight.Machine) error {
	var failed error
	for _, p := range preflight.Ports() {
		port := preflight.Port{Number: p.Number, State: preflight.PortFree}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort(p.Address, strconv.Itoa(p.Number)))
		switch {
		case err == nil:
			err = listener.Close()
		case errors.Is(err, windows.WSAEADDRINUSE):
			port.State, err = preflight.PortTaken, nil
		case errors.Is(err, windows.WSAEACCES):
			port.State, err = preflight.PortExcluded, nil
		}
		failed = errors.Join(failed, err)
		m.Ports = append(m.Ports, port)
	}
	return failed
}
