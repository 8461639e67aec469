// Package simulated is what SSH shows of a Windows host: its shells' rules for command lines, its files over SFTP, and
// programs that really run.
package simulated

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// SettingsFile holds the Settings of a host, in its folder.
	SettingsFile = "settings.json"
	// StartsFile has a line for every command that was started, in the host's folder.
	StartsFile = "starts"
	// SFTP is the command for the SFTP server.
	SFTP = "simulated-sftp"
	// RootVariable is the environment variable with the host's folder.
	RootVariable = "WMCO_NODE_ROOT"
)

// Shell is the shell of a host's SSH server.
type Shell string

const (
	// ShellCmd is cmd.exe, the default of Win32-OpenSSH.
	ShellCmd Shell = "cmd"
	// ShellPowerShell is powershell.exe -c.
	ShellPowerShell Shell = "powershell"
	// ShellSh is a POSIX shell, such as Cygwin's.
	ShellSh Shell = "sh"
	// ShellPlain is the real sh, for rsync and other programs.
	ShellPlain Shell = "plain"
)

// Rename is how the SFTP server renames onto an existing file.
type Rename string

const (
	// RenamePosix replaces it.
	RenamePosix Rename = ""
	// RenameNone knows no posix-rename.
	RenameNone Rename = "none"
	// RenameUnlinks removes the target first and fails before it renames.
	RenameUnlinks Rename = "unlinks"
)

// Silent is where a host stops.
type Silent string

const (
	// SilentAlways answers neither commands nor SFTP.
	SilentAlways Silent = "always"
	// SilentSFTP answers commands.
	SilentSFTP Silent = "sftp"
	// SilentUpload answers SFTP until the first mebibyte of a file.
	SilentUpload Silent = "upload"
	// SilentApply answers everything but apply.
	SilentApply Silent = "apply"
)

// Settings are the behaviour of a host.
type Settings struct {
	Shell Shell `json:"shell"`
	// Noise is printed by the shell's profile, first of all.
	Noise string `json:"noise,omitempty"`
	// Rename is how files are renamed over SFTP.
	Rename Rename `json:"rename,omitempty"`
	// DiskBytes is the size limit of files over SFTP; 0 is none.
	DiskBytes int64 `json:"diskBytes,omitempty"`
	// Denied refuses to create files over SFTP.
	Denied bool `json:"denied,omitempty"`
	// Silent is from when on the host stops to answer, and does not end. Its SSH server lives.
	Silent Silent `json:"silent,omitempty"`
	// Environment is NAME=value, for programs.
	Environment []string `json:"environment,omitempty"`
}

// Machine is a host in a folder.
type Machine struct {
	Folder   string
	Settings Settings
}

// Local returns the file of a Windows path.
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

// hangForever ends with the connection: with the process that started this one.
func hangForever() {
	for parent := os.Getppid(); os.Getppid() == parent; {
		time.Sleep(100 * time.Millisecond)
	}
	os.Exit(1)
}

// noteStart adds a command to StartsFile.
func (m Machine) noteStart(command string) error {
	file, err := os.OpenFile(filepath.Join(m.Folder, StartsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(strings.ReplaceAll(command, "\n", " ") + "\n"); err != nil {
		return err
	}
	return file.Close()
}
