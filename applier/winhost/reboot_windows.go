package winhost

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
)

// rebootDelay is how long Windows waits, in seconds, so that the caller can close its connection.
const rebootDelay = 5

// rebootReason is in the event log: planned, a reconfiguration of the operating system
// (learn.microsoft.com/windows/win32/shutdown/system-shutdown-reason-codes).
const rebootReason = windows.SHTDN_REASON_MAJOR_OPERATINGSYSTEM | windows.SHTDN_REASON_MINOR_RECONFIG | windows.SHTDN_REASON_FLAG_PLANNED

// maxMessage is the limit of the message of a shutdown, in characters
// (learn.microsoft.com/windows/win32/api/winreg/nf-winreg-initiatesystemshutdownexw).
const maxMessage = 512

// Reboot does nothing if a restart is in progress or scheduled.
func (h *Host) Reboot(ctx context.Context, reason string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := allowShutdown(); err != nil {
		return fmt.Errorf("enabling the privilege to restart: %w", err)
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
		return fmt.Errorf("restarting the host: %w", err)
	}
	return nil
}

// allowShutdown enables a privilege that administrators have and that is off by default
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
