package settings

import (
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"wmco/applier/winhost/hklm"
)

// keyEnvironment has the variables of the host (learn.microsoft.com/windows/win32/procthread/environment-variables).
const keyEnvironment = `SYSTEM\CurrentControlSet\Control\Session Manager\Environment`

// machineVariables are the variables in the registry: unexpanded, and without those of users and processes.
type machineVariables struct{}

func (machineVariables) getVariable(name string) (string, bool, error) {
	return hklm.ReadText(keyEnvironment, name)
}

func (machineVariables) setVariable(name, value string, e expansion) error {
	return hklm.WithKey(keyEnvironment, registry.SET_VALUE, func(k registry.Key) error {
		if e == expands {
			return k.SetExpandStringValue(name, value)
		}
		return k.SetStringValue(name, value)
	})
}

func (machineVariables) unsetVariable(name string) error {
	return hklm.WithKey(keyEnvironment, registry.SET_VALUE, func(k registry.Key) error {
		return hklm.IgnoreNotExist(k.DeleteValue(name))
	})
}

// The arguments of the message to all windows (learn.microsoft.com/windows/win32/winmsg/wm-settingchange,
// learn.microsoft.com/windows/win32/api/winuser/nf-winuser-sendmessagetimeoutw).
const (
	toAllWindows     = 0xffff // HWND_BROADCAST
	settingChange    = 0x001a // WM_SETTINGCHANGE
	abortIfHung      = 0x0002 // SMTO_ABORTIFHUNG
	announceLimitMsg = 1000   // milliseconds for each window
)

func (machineVariables) announceChange() {
	what := windows.StringToUTF16Ptr("Environment") // a constant without NUL
	send := windows.NewLazySystemDLL("user32.dll").NewProc("SendMessageTimeoutW")
	if send.Find() == nil { // Nano Server does not have it
		_, _, _ = send.Call(toAllWindows, settingChange, 0, uintptr(unsafe.Pointer(what)), abortIfHung, announceLimitMsg, 0)
	}
}
