package winetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// tripwireLog is the file in which a tripwire records its command line.
const tripwireLog = `C:\tripwire.log`

// traps are the programs with which people configure Windows. Wine has stubs for most of them that do nothing and
// succeed, so that a program that relies on them would pass its tests.
var traps = []string{
	`C:\windows\system32\WindowsPowerShell\v1.0\powershell.exe`, `C:\windows\system32\shutdown.exe`, `C:\windows\system32\netsh.exe`,
	`C:\windows\system32\dism.exe`, `C:\windows\system32\sc.exe`, `C:\windows\system32\net.exe`, `C:\windows\system32\certutil.exe`,
	`C:\windows\system32\icacls.exe`, `C:\windows\system32\schtasks.exe`, `C:\windows\system32\setx.exe`,
	`C:\windows\system32\wevtutil.exe`, `C:\windows\system32\taskkill.exe`, `C:\windows\system32\tasklist.exe`,
}

// Tripwires replaces PowerShell and each tool of Windows by a program that records that it was run, and fails.
func (p *Prefix) Tripwires(t testing.TB) {
	t.Helper()
	const exe = `C:\tripwire.exe`
	p.Build(t, exe, ".", "wmco/internal/test/winetest/testdata/tripwire")
	program := p.ReadFile(t, exe)
	var registry strings.Builder
	registry.WriteString("REGEDIT4\n\n[HKEY_CURRENT_USER\\Software\\Wine\\DllOverrides]\n")
	for _, path := range traps {
		p.WriteFile(t, path, program)
		// Otherwise Wine runs its built-in program and ignores the file.
		fmt.Fprintf(&registry, "\"%s\"=\"native\"\n", path[strings.LastIndexByte(path, '\\')+1:])
	}
	const file = `C:\tripwire.reg`
	p.WriteFile(t, file, []byte(registry.String()))
	if r := p.Run(t, Command{Path: "regedit", Args: []string{"/S", file}}); r.ExitCode != 0 {
		t.Fatalf("setting tripwires: %+v", r)
	}
}

// Tripped returns the command lines of the tripwires that were run.
func (p *Prefix) Tripped(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile(p.Path(tripwireLog))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}
