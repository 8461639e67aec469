// Package simulated is a Windows machine as far as SSH shows it: its shells' rules for command lines, its files over SFTP,
// and programs that are started for real.
package simulated

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// SettingsFile holds the Settings of a machine, in its folder.
	SettingsFile = "settings.json"
	// StartsFile has a line for every command that was started, in the machine's folder.
	StartsFile = "starts"
	// SFTP is the command that means the SFTP server.
	SFTP = "simulated-sftp"
	// RootVariable tells programs where the machine's drives are.
	RootVariable = "WMCO_NODE_ROOT"
)

// Shell is what a machine's SSH server runs commands with.
type Shell string

const (
	// ShellCmd is cmd.exe, the default of Win32-OpenSSH.
	ShellCmd Shell = "cmd"
	// ShellPowerShell is powershell.exe -c.
	ShellPowerShell Shell = "powershell"
	// ShellSh is a POSIX shell, such as Cygwin's.
	ShellSh Shell = "sh"
	// ShellPlain is this machine's own sh, for other programs than ours.
	ShellPlain Shell = "plain"
)

// Rename is how the SFTP server renames onto a file that is there.
type Rename string

const (
	// RenamePosix replaces it.
	RenamePosix Rename = ""
	// RenameNone knows no posix-rename.
	RenameNone Rename = "none"
	// RenameUnlinks removes the target first, and is cut before it renames.
	RenameUnlinks Rename = "unlinks"
)

// Settings are how a machine behaves.
type Settings struct {
	Shell Shell `json:"shell"`
	// Noise is printed by the shell's profile, before anything else.
	Noise string `json:"noise,omitempty"`
	// Rename is how files are renamed over SFTP.
	Rename Rename `json:"rename,omitempty"`
	// DiskBytes is how large a file can become over SFTP; 0 has no limit.
	DiskBytes int64 `json:"diskBytes,omitempty"`
	// Denied: nothing can be created over SFTP.
	Denied bool `json:"denied,omitempty"`
	// Environment is NAME=value, for programs.
	Environment []string `json:"environment,omitempty"`
}

// Machine is a machine in a folder.
type Machine struct {
	Folder   string
	Settings Settings
}

// Local is where a Windows path lies on this machine.
func (m Machine) Local(windows string) (string, error) {
	clean := strings.ReplaceAll(windows, `\`, "/")
	for strings.Contains(clean, "//") {
		clean = strings.ReplaceAll(clean, "//", "/")
	}
	clean = strings.TrimPrefix(clean, "/")
	drive, rest, _ := strings.Cut(clean, ":")
	if len(drive) != 1 || strings.Contains("/"+rest+"/", "/../") {
		return "", fmt.Errorf("%q is no path on a drive", windows)
	}
	return filepath.Join(m.Folder, strings.ToUpper(drive), filepath.FromSlash(rest)), nil
}

// started notes that a command was started.
func (m Machine) started(command string) error {
	file, err := os.OpenFile(filepath.Join(m.Folder, StartsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(strings.ReplaceAll(command, "\n", " ") + "\n"); err != nil {
		return err
	}
	return file.Close()
}
