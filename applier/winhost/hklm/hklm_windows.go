package hklm

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// TCPIP is the key of the IP stack.
const TCPIP = `SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`

// WithKey opens a key for the time of use. A key that does not exist is registry.ErrNotExist.
func WithKey(path string, access uint32, use func(registry.Key) error) error {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, path, access)
	if err != nil {
		return fmt.Errorf(`opening HKLM\%s: %w`, path, err)
	}
	return errors.Join(use(k), k.Close())
}

// WithNewKey is WithKey for a key that is made where it does not exist.
func WithNewKey(path string, access uint32, use func(registry.Key) error) error {
	k, _, err := registry.CreateKey(registry.LOCAL_MACHINE, path, access)
	if err != nil {
		return fmt.Errorf(`creating HKLM\%s: %w`, path, err)
	}
	return errors.Join(use(k), k.Close())
}

// ReadText reads a string value. It returns false if the key or the value does not exist.
func ReadText(path, value string) (text string, exists bool, err error) {
	err = WithKey(path, registry.QUERY_VALUE, func(k registry.Key) (err error) {
		text, _, err = k.GetStringValue(value)
		return err
	})
	return text, err == nil, IgnoreNotExist(err)
}

// IgnoreNotExist returns nil for the error of a key or a value that does not exist.
func IgnoreNotExist(err error) error {
	if errors.Is(err, registry.ErrNotExist) {
		return nil
	}
	return err
}

// FlushHive writes the changes of a hive, such as SYSTEM, to the disk. Windows itself does so later. Files that were
// flushed before must not refer to changes that a loss of power takes back
// (learn.microsoft.com/windows/win32/api/winreg/nf-winreg-regflushkey).
func FlushHive(hive string) error {
	flush := windows.NewLazySystemDLL("advapi32.dll").NewProc("RegFlushKey")
	err := WithKey(hive, registry.QUERY_VALUE, func(k registry.Key) error {
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
