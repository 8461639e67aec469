package bundle

import "slices"

// BootReason is why Windows itself waits for a boot: what asked for it. No bundle is the reason.
type BootReason string

// Each is a place in the registry that Windows and its updates write.
const (
	// BootForComponents means that a component of Windows was installed, updated or removed: the key RebootPending of
	// Component Based Servicing.
	BootForComponents BootReason = "Components"
	// BootForUpdates means that an update was installed: the key RebootRequired of Windows Update.
	BootForUpdates BootReason = "Updates"
	// BootForFiles means that files in use are replaced or removed with the next boot: the value
	// PendingFileRenameOperations of the Session Manager (learn.microsoft.com, MoveFileExW,
	// MOVEFILE_DELAY_UNTIL_REBOOT).
	BootForFiles BootReason = "Files"
)

// BootReasons returns every reason.
func BootReasons() []BootReason { return []BootReason{BootForComponents, BootForFiles, BootForUpdates} }

// IsKnown reports whether the reason is one of BootReasons: what a host reports may be any text.
func (r BootReason) IsKnown() bool { return slices.Contains(BootReasons(), r) }

// Describe returns what asked for the boot, for people.
func (r BootReason) Describe() string {
	switch r {
	case BootForComponents:
		return "a Windows component was changed"
	case BootForUpdates:
		return "a Windows update was installed"
	case BootForFiles:
		return "files in use must be replaced"
	}
	return "another reason"
}
