package winhost

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"wmco/bundle"
)

// withKey opens a key of the machine for one piece of work.
func withKey(path string, access uint32, use func(registry.Key) error) error {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, path, access)
	if err != nil {
		return fmt.Errorf(`opening HKLM\%s: %w`, path, err)
	}
	return errors.Join(use(k), k.Close())
}

// machineText reads a text of the machine's registry; false when the key or the value is not there.
func machineText(path, value string) (text string, there bool, err error) {
	err = withKey(path, registry.QUERY_VALUE, func(k registry.Key) (err error) {
		text, _, err = k.GetStringValue(value)
		return err
	})
	return text, err == nil, ignoreNotExist(err)
}

// hives are the parts of the registry in which settings stand.
var hives = map[bundle.EntryKind]string{
	bundle.KindVariable: "SYSTEM", bundle.KindHostName: "SYSTEM", bundle.KindRoute: "SYSTEM", bundle.KindFirewall: "SYSTEM",
	bundle.KindTrustedCA: "SOFTWARE",
}

// hiveServices is where services stand.
const hiveServices = "SYSTEM"

// flushHive writes what was changed in a part of the registry to the disk, which Windows does when it has time: the files
// that we write are there at once, and must not know of changes that a loss of power takes back
// (learn.microsoft.com/windows/win32/api/winreg/nf-winreg-regflushkey).
func flushHive(hive string) error {
	flush := windows.NewLazySystemDLL("advapi32.dll").NewProc("RegFlushKey")
	err := withKey(hive, registry.QUERY_VALUE, func(k registry.Key) error {
		if code, _, _ := flush.Call(uintptr(k)); code != 0 {
			return windows.Errno(code)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("flushing the registry: %w", err)
	}
	return nil
}

// keyEnvironment holds the variables of the machine (learn.microsoft.com/windows/win32/procthread/environment-variables).
const keyEnvironment = `SYSTEM\CurrentControlSet\Control\Session Manager\Environment`

// machineVariables are those of the registry: unexpanded, and without those that a user or a process has.
type machineVariables struct{}

func (machineVariables) get(name string) (string, bool, error) {
	return machineText(keyEnvironment, name)
}

func (machineVariables) set(name, value string, e expansion) error {
	return withKey(keyEnvironment, registry.SET_VALUE, func(k registry.Key) error {
		if e == expands {
			return k.SetExpandStringValue(name, value)
		}
		return k.SetStringValue(name, value)
	})
}

func (machineVariables) unset(name string) error {
	return withKey(keyEnvironment, registry.SET_VALUE, func(k registry.Key) error {
		return ignoreNotExist(k.DeleteValue(name))
	})
}

// How windows are told (learn.microsoft.com/windows/win32/winmsg/wm-settingchange,
// learn.microsoft.com/windows/win32/api/winuser/nf-winuser-sendmessagetimeoutw).
const (
	toAllWindows     = 0xffff // HWND_BROADCAST
	settingChange    = 0x001a // WM_SETTINGCHANGE
	abortIfHung      = 0x0002 // SMTO_ABORTIFHUNG
	announceLimitMsg = 1000   // milliseconds for each window
)

func (machineVariables) announce() {
	what := windows.StringToUTF16Ptr("Environment") // a constant without NUL
	send := windows.NewLazySystemDLL("user32.dll").NewProc("SendMessageTimeoutW")
	if send.Find() == nil { // not there on Nano Server
		_, _, _ = send.Call(toAllWindows, settingChange, 0, uintptr(unsafe.Pointer(what)), abortIfHung, announceLimitMsg, 0)
	}
}
