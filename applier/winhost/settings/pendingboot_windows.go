package settings

import (
	"errors"

	"golang.org/x/sys/windows/registry"

	"wmco/applier/winhost/hklm"
	"wmco/bundle"
)

// Where Windows notes that it waits for a boot. The keys exist only then, and Windows removes them with the boot. They
// are what programs that install updates look at; there is no API for all of them (learn.microsoft.com,
// ISystemInformation::get_RebootRequired, is about Windows Update alone).
const (
	keyComponents  = `SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending`
	keyUpdates     = `SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update\RebootRequired`
	keySession     = `SYSTEM\CurrentControlSet\Control\Session Manager`
	valueFileMoves = "PendingFileRenameOperations"
)

// pendingBoots returns why Windows waits for a boot, sorted.
func pendingBoots() ([]bundle.BootReason, error) {
	var reasons []bundle.BootReason
	components, err := keyExists(keyComponents)
	if err != nil {
		return nil, err
	}
	if components {
		reasons = append(reasons, bundle.BootForComponents)
	}
	files, err := hasFileMoves()
	if err != nil {
		return nil, err
	}
	if files {
		reasons = append(reasons, bundle.BootForFiles)
	}
	updates, err := keyExists(keyUpdates)
	if err != nil {
		return nil, err
	}
	if updates {
		reasons = append(reasons, bundle.BootForUpdates)
	}
	return reasons, nil
}

// keyExists looks at the 64-bit view of the registry, which is that of this program.
func keyExists(path string) (bool, error) {
	err := hklm.WithKey(path, registry.QUERY_VALUE, func(registry.Key) error { return nil })
	return err == nil, hklm.IgnoreNotExist(err)
}

// hasFileMoves reports whether a file is replaced or removed with the next boot.
func hasFileMoves() (bool, error) {
	var list []byte
	err := hklm.WithKey(keySession, registry.QUERY_VALUE, func(k registry.Key) error {
		size, _, err := k.GetValue(valueFileMoves, nil)
		for err == nil && size > len(list) || errors.Is(err, registry.ErrShortBuffer) { // it may have grown
			list = make([]byte, size)
			size, _, err = k.GetValue(valueFileMoves, list)
		}
		list = list[:min(size, len(list))]
		return err
	})
	return err == nil && hasOtherFileMoves(list), hklm.IgnoreNotExist(err)
}
