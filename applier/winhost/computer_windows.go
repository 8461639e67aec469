package winhost

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Where the names of the machine are: the NetBIOS names that it goes by and that it gets, and the DNS host name that it gets
// (learn.microsoft.com/troubleshoot/windows-server/networking, "Hostname" and "NV Hostname" of Tcpip\Parameters).
const (
	keyActiveName = `SYSTEM\CurrentControlSet\Control\ComputerName\ActiveComputerName`
	keyNextName   = `SYSTEM\CurrentControlSet\Control\ComputerName\ComputerName`
	valueName     = "ComputerName"
	keyTCPIP      = `SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`
	valueNextHost = "NV Hostname"
)

// machineName is the DNS host name of the machine (ComputerNamePhysicalDnsHostname).
type machineName struct{}

// names takes the next names from the registry; there is no API for them.
func (machineName) names() (active, next string, err error) {
	if active, err = computerNameEx(windows.ComputerNamePhysicalDnsHostname); err != nil {
		return "", "", err
	}
	activeShort, _, err := machineText(keyActiveName, valueName)
	if err != nil {
		return "", "", err
	}
	nextShort, _, err := machineText(keyNextName, valueName)
	if err != nil {
		return "", "", err
	}
	nextHost, _, err := machineText(keyTCPIP, valueNextHost)
	return active, nextName(active, nextHost, activeShort, nextShort), err
}

// rename takes force with the next boot (learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-setcomputernameexw).
func (machineName) rename(name string) error {
	text, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	set := windows.NewLazySystemDLL("kernel32.dll").NewProc("SetComputerNameExW")
	if ok, _, err := set.Call(windows.ComputerNamePhysicalDnsHostname, uintptr(unsafe.Pointer(text))); ok == 0 {
		return err
	}
	return nil
}

// computerNameEx reads one of the names of the machine
// (learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-getcomputernameexw).
func computerNameEx(kind uint32) (string, error) {
	buffer := make([]uint16, 256)
	n := uint32(len(buffer))
	if err := windows.GetComputerNameEx(kind, &buffer[0], &n); err != nil {
		return "", fmt.Errorf("reading the name of the machine: %w", err)
	}
	return windows.UTF16ToString(buffer[:n]), nil
}
