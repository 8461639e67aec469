package bundle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxServiceName is the longest name of a service
// (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-createservicew).
const maxServiceName = 256

// CheckServiceName returns an error unless name can be that of a service in a bundle. Slashes are not allowed by
// Windows, and other letters than ASCII are not for the reason that CheckPath has.
func CheckServiceName(name string) error {
	if name == "" || len(name) > maxServiceName || strings.ContainsAny(name, `/\`) || !isASCII(name) ||
		strings.ContainsFunc(name, isControl) || strings.Contains(name, deleteCharacter) {
		return fmt.Errorf("%q is no name of a service", name)
	}
	return nil
}

// CheckMachineVariable returns an error for a variable of the host that no bundle may set or remove: Windows and the
// programs on the host need the one that they have.
func CheckMachineVariable(name string) error {
	if slices.ContainsFunc(systemVariables(), func(v string) bool { return strings.EqualFold(v, name) }) {
		return fmt.Errorf("variable %s belongs to Windows", name)
	}
	return nil
}

// systemVariables are those that an installation of Windows Server has for all users.
func systemVariables() []string {
	return []string{
		"ComSpec", "DriverData", "NUMBER_OF_PROCESSORS", "OS", "Path", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROCESSOR_IDENTIFIER",
		"PROCESSOR_LEVEL", "PROCESSOR_REVISION", "ProgramData", "ProgramFiles", "ProgramFiles(x86)", "PSModulePath", "PUBLIC",
		"SystemDrive", "SystemRoot", "TEMP", "TMP", "USERNAME", "windir",
	}
}

func checkMachineVariable(v Variable) error {
	return errors.Join(CheckMachineVariable(v.Name), checkVariable(v))
}
