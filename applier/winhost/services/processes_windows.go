package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"wmco/applier/winhost/wait"
	"wmco/bundle"
)

// snapshotProcesses returns every process of the host
// (learn.microsoft.com/windows/win32/api/tlhelp32/nf-tlhelp32-createtoolhelp32snapshot).
func snapshotProcesses() ([]process, error) {
	handle, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	defer windows.CloseHandle(handle) //nolint:errcheck // nothing was written
	var all []process
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(handle, &entry); err == nil; err = windows.Process32Next(handle, &entry) {
		p := process{ID: entry.ProcessID, Parent: entry.ParentProcessID, Program: windows.UTF16ToString(entry.ExeFile[:])}
		p.inspectProcess()
		all = append(all, p)
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	return all, nil
}

// inspectProcess adds fields that are not in the list. A process that is protected or has just ended cannot be opened: it is
// then older than all others and has no path.
func (p *process) inspectProcess() {
	handle, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, p.ID)
	if err != nil {
		return
	}
	defer windows.CloseHandle(handle) //nolint:errcheck // nothing was written
	if created, err := creationTime(handle); err == nil {
		p.Created = created
	}
	buffer := make([]uint16, bundle.MaxPath+1)
	n := uint32(len(buffer)) //nolint:gosec // small
	if err := windows.QueryFullProcessImageName(handle, 0, &buffer[0], &n); err == nil {
		p.Program = windows.UTF16ToString(buffer[:n])
	}
}

// programOf returns the path of the program of a process, empty where that is not known. What else a process was
// started with has no documented API without its memory, and when it was started is in the time of a clock that may be
// set since.
func programOf(id uint32) string {
	p := process{ID: id}
	p.inspectProcess()
	return p.Program
}

// hasEnded reports whether no process with this id runs
// (learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-openprocess).
func hasEnded(id uint32) bool {
	handle, err := windows.OpenProcess(windows.SYNCHRONIZE, false, id)
	if err != nil {
		return errors.Is(err, windows.ERROR_INVALID_PARAMETER)
	}
	defer windows.CloseHandle(handle) //nolint:errcheck // nothing was written
	event, err := windows.WaitForSingleObject(handle, 0)
	return err == nil && event == windows.WAIT_OBJECT_0
}

// creationTime distinguishes processes with the same id
// (learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-getprocesstimes).
func creationTime(handle windows.Handle) (time.Time, error) {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(handle, &created, &exited, &kernel, &user); err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, created.Nanoseconds()), nil
}

// heldProcess is an open process. Windows does not reuse its id until it is closed.
type heldProcess struct {
	process
	handle windows.Handle
}

// group has the processes of a service, held open.
type group struct {
	main     uint32
	programs []string
	held     []heldProcess
}

// gatherProcesses adds the processes of the service that run now. It never adds this process, which may be the
// service's program, run by hand to replace the service.
func (g *group) gatherProcesses() error {
	all, err := snapshotProcesses()
	if err != nil {
		return err
	}
	for _, p := range serviceProcesses(all, g.main, g.programs) {
		if p.ID == windows.GetCurrentProcessId() || slices.ContainsFunc(g.held, func(h heldProcess) bool { return h.ID == p.ID }) {
			continue
		}
		if err := g.addProcess(p); err != nil {
			return err
		}
	}
	return nil
}

// addProcess opens a process of the snapshot, unless it has ended since.
func (g *group) addProcess(p process) error {
	const rights = windows.PROCESS_QUERY_LIMITED_INFORMATION | windows.PROCESS_TERMINATE | windows.SYNCHRONIZE
	handle, err := windows.OpenProcess(rights, false, p.ID)
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening process %d (%s): %w", p.ID, p.Program, err)
	}
	created, err := creationTime(handle)
	if err == nil && created.Equal(p.Created) {
		g.held = append(g.held, heldProcess{p, handle})
		return nil
	}
	return errors.Join(err, windows.CloseHandle(handle))
}

func (g *group) closeHandles() {
	for _, h := range g.held {
		_ = windows.CloseHandle(h.handle) // nothing was written
	}
}

// runningProcesses returns the processes that still run.
func (g *group) runningProcesses() []heldProcess {
	var found []heldProcess
	for _, h := range g.held {
		if event, err := windows.WaitForSingleObject(h.handle, 0); err != nil || event != windows.WAIT_OBJECT_0 {
			found = append(found, h)
		}
	}
	return found
}

// runningNames lists the processes that still run, for an error.
func (g *group) runningNames() string {
	text := ""
	for _, h := range g.runningProcesses() {
		text += fmt.Sprintf(" %d (%s)", h.ID, h.Program)
	}
	return text
}

// killProcesses ends the processes that still run, and those that they started until then. It returns when they are
// gone.
func (g *group) killProcesses(ctx context.Context, limits Limits) error {
	if err := g.gatherProcesses(); err != nil {
		return err
	}
	for _, h := range g.runningProcesses() {
		// The error for a process that is ending already is ERROR_ACCESS_DENIED
		// (learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-terminateprocess).
		if err := windows.TerminateProcess(h.handle, 1); err != nil && !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			return fmt.Errorf("ending process %d (%s): %w", h.ID, h.Program, err)
		}
	}
	gone := func() (bool, error) { return len(g.runningProcesses()) == 0, nil }
	if err := wait.PollUntil(ctx, limits.Killed, limits.Poll, gone); err != nil {
		return fmt.Errorf("waiting for the end of killed processes%s: %w", g.runningNames(), err)
	}
	return nil
}

// programsOf returns the paths of the programs in a command line.
func programsOf(commandLine string) ([]string, error) {
	argv, err := windows.DecomposeCommandLine(commandLine)
	if err != nil || len(argv) == 0 {
		return nil, fmt.Errorf("reading command line %s: %w", commandLine, errors.Join(err, errNoCommand))
	}
	return servicePrograms(argv), nil
}

var errNoCommand = errors.New("it has no program")
