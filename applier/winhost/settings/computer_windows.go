package settings

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"

	"wmco/applier/winhost/hklm"
)

// Where the names of the host are: the current and the next NetBIOS name, and the next DNS host name
// (learn.microsoft.com/troubleshoot/windows-server/networking, "Hostname" and "NV Hostname" of Tcpip\Parameters).
const (
	keyActiveName = `SYSTEM\CurrentControlSet\Control\ComputerName\ActiveComputerName`
	keyNextName   = `SYSTEM\CurrentControlSet\Control\ComputerName\ComputerName`
	valueName     = "ComputerName"
	valueNextHost = "NV Hostname"
)

// machineName is the DNS host name of the host (ComputerNamePhysicalDnsHostname).
type machineName struct{}

// readNames reads the next names from the registry. There is no API for them.
func (machineName) readNames() (active, next string, err error) {
	if active, err = computerNameEx(windows.ComputerNamePhysicalDnsHostname); err != nil {
		return "", "", err
	}
	activeShort, _, err := hklm.ReadText(keyActiveName, valueName)
	if err != nil {
		return "", "", err
	}
	nextShort, _, err := hklm.ReadText(keyNextName, valueName)
	if err != nil {
		return "", "", err
	}
	nextHost, _, err := hklm.ReadText(hklm.TCPIP, valueNextHost)
	if isRenamed(active, activeShort, nextShort) {
		return activeShort, active, err
	}
	return active, nameAfterNextBoot(active, nextHost, activeShort, nextShort), err
}

// renameComputer takes effect with the next boot
// (learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-setcomputernameexw).
func (machineName) renameComputer(name string) error {
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

// computerNameEx reads one of the names of the host
// (learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-getcomputernameexw).
func computerNameEx(kind uint32) (string, error) {
	buffer := make([]uint16, 256)
	n := uint32(len(buffer))
	if err := windows.GetComputerNameEx(kind, &buffer[0], &n); err != nil {
		return "", fmt.Errorf("reading the host name: %w", err)
	}
	return windows.UTF16ToString(buffer[:n]), nil
}
