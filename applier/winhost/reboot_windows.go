package winhost

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
)

// rebootDelay is how long Windows waits, in seconds: the caller's connection ends in order meanwhile.
const rebootDelay = 5

// rebootReason is what the event log says: planned, the operating system is configured anew
// (learn.microsoft.com/windows/win32/shutdown/system-shutdown-reason-codes).
const rebootReason = windows.SHTDN_REASON_MAJOR_OPERATINGSYSTEM | windows.SHTDN_REASON_MINOR_RECONFIG | windows.SHTDN_REASON_FLAG_PLANNED

// maxMessage is the longest text of a shutdown, in characters
// (learn.microsoft.com/windows/win32/api/winreg/nf-winreg-initiatesystemshutdownexw).
const maxMessage = 512

// Reboot is done when a restart is already on its way.
func (h *Host) Reboot(ctx context.Context, reason string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := allowShutdown(); err != nil {
		return fmt.Errorf("asking for the right to restart: %w", err)
	}
	text := []rune(reason)
	message, err := windows.UTF16PtrFromString(string(text[:min(len(text), maxMessage)]))
	if err != nil {
		return err
	}
	err = windows.InitiateSystemShutdownEx(nil, message, rebootDelay, true, true, rebootReason)
	if errors.Is(err, windows.ERROR_SHUTDOWN_IN_PROGRESS) || errors.Is(err, windows.ERROR_SHUTDOWN_IS_SCHEDULED) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restarting the machine: %w", err)
	}
	return nil
}

// allowShutdown turns on a right that administrators have and that is off
// (learn.microsoft.com/windows/win32/secauthz/enabling-and-disabling-privileges-in-c--).
func allowShutdown() error {
	var token windows.Token
	if err := windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES|windows.TOKEN_QUERY, &token); err != nil {
		return err
	}
	name, err := windows.UTF16PtrFromString("SeShutdownPrivilege") // SE_SHUTDOWN_NAME
	if err == nil {
		rights := windows.Tokenprivileges{PrivilegeCount: 1}
		rights.Privileges[0].Attributes = windows.SE_PRIVILEGE_ENABLED
		err = windows.LookupPrivilegeValue(nil, name, &rights.Privileges[0].Luid)
		if err == nil {
			err = windows.AdjustTokenPrivileges(token, false, &rights, 0, nil, nil)
		}
	}
	return errors.Join(err, token.Close())
}
