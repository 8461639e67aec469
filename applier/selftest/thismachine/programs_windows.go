package thismachine

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"

	"wmco/applier/selftest"
	"wmco/applier/winhost/settings"
)

// install writes a copy of this program to path, which plays a role.
func install(t selftest.T, path string, plays selftest.Program) {
	t.Helper()
	own, err := os.Executable()
	check(t, err)
	from, err := os.Open(own)
	check(t, err)
	to, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(to, from)
		_, failed := io.WriteString(to, mark+string(plays))
		err = errors.Join(err, failed, to.Close())
	}
	check(t, errors.Join(err, from.Close()))
}

// InstallProgram implements selftest.ServiceInstaller.
func (Machine) InstallProgram(t selftest.T, path string, plays selftest.Program) {
	t.Helper()
	install(t, path, plays)
}

// RunProgram implements selftest.OtherPrograms.
func (Machine) RunProgram(t selftest.T, path string) (end func()) {
	t.Helper()
	install(t, path, playsWaiter)
	program := exec.CommandContext(context.WithoutCancel(t.Context()), path)
	stdout, err := program.StdoutPipe()
	check(t, err)
	check(t, program.Start())
	end = func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	}
	t.Cleanup(end)
	// Until it prints a line, Windows may not have loaded its file yet.
	_, err = bufio.NewReader(stdout).ReadString('\n')
	check(t, err)
	return end
}

// AbandonLock implements selftest.LockAbandoner.
func (m Machine) AbandonLock(t selftest.T, owner string) {
	t.Helper()
	const path = selftest.Root + `\locker.exe`
	install(t, path, playsLocker)
	args := []string{owner}
	if m.Wine {
		args = append(args, "wine")
	}
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("locking as another process: %w: %s", err, out))
	}
}

// endPrograms ends the programs of an earlier run that run from selftest.Root but are no services: a run that is killed
// leaves them.
func endPrograms() (ended int, err error) {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return 0, fmt.Errorf("listing processes: %w", err)
	}
	defer windows.CloseHandle(snapshot) //nolint:errcheck // nothing was written
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	own := windows.GetCurrentProcessId()
	for err = windows.Process32First(snapshot, &entry); err == nil; err = windows.Process32Next(snapshot, &entry) {
		if entry.ProcessID != own && endIfOurs(entry.ProcessID) {
			ended++
		}
	}
	if errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		err = nil
	}
	return ended, err
}

// endIfOurs ends a process whose program is below selftest.Root.
func endIfOurs(id uint32) bool {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.PROCESS_TERMINATE|windows.SYNCHRONIZE, false, id)
	if err != nil {
		return false // it has ended, or it is one of Windows itself
	}
	defer windows.CloseHandle(process) //nolint:errcheck // nothing was written
	name := make([]uint16, windows.MAX_LONG_PATH)
	size := uint32(len(name)) //nolint:gosec // 32 KiB
	if windows.QueryFullProcessImageName(process, 0, &name[0], &size) != nil {
		return false
	}
	if !isBelowRoot(windows.UTF16ToString(name[:size])) {
		return false
	}
	if windows.TerminateProcess(process, 1) != nil {
		return false
	}
	const limit = 10_000 // milliseconds
	_, _ = windows.WaitForSingleObject(process, limit)
	return true
}

// removeRoots removes the trusted CAs of the self-test.
func removeRoots() (removed int, err error) {
	all, err := (settings.RootStore{}).TrustedRoots()
	if err != nil {
		return 0, err
	}
	for _, der := range all {
		certificate, parseErr := x509.ParseCertificate(der)
		if parseErr != nil || !strings.HasPrefix(certificate.Subject.CommonName, selftest.CertificateName) {
			continue
		}
		removed++
		err = errors.Join(err, settings.RootStore{}.RemoveRoot(der))
	}
	return removed, err
}
