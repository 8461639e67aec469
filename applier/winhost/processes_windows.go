package winhost

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"wmco/bundle"
)

// snapshot is every process of the machine
// (learn.microsoft.com/windows/win32/api/tlhelp32/nf-tlhelp32-createtoolhelp32snapshot).
func snapshot() ([]process, error) {
	handle, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	defer windows.CloseHandle(handle) //nolint:errcheck // nothing was written
	var all []process
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err = windows.Process32First(handle, &entry); err == nil; err = windows.Process32Next(handle, &entry) {
		p := process{ID: entry.ProcessID, Parent: entry.ParentProcessID, Program: windows.UTF16ToString(entry.ExeFile[:])}
		p.look()
		all = append(all, p)
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	return all, nil
}

// look adds what the list does not tell. Processes that are protected or have just ended say nothing: such a one is older
// than all, and has no path.
func (p *process) look() {
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

// ended tells that there is no process of this id
// (learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-openprocess).
func ended(id uint32) bool {
	handle, err := windows.OpenProcess(windows.SYNCHRONIZE, false, id)
	if err != nil {
		return errors.Is(err, windows.ERROR_INVALID_PARAMETER)
	}
	defer windows.CloseHandle(handle) //nolint:errcheck // nothing was written
	event, err := windows.WaitForSingleObject(handle, 0)
	return err == nil && event == windows.WAIT_OBJECT_0
}

// creationTime tells processes with the same id apart
// (learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-getprocesstimes).
func creationTime(handle windows.Handle) (time.Time, error) {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(handle, &created, &exited, &kernel, &user); err != nil {
		return time.Time{}, err
	}
	return time.Unix(0, created.Nanoseconds()), nil
}

// heldProcess is an open process. Its id belongs to nobody else until it is closed.
type heldProcess struct {
	process
	handle windows.Handle
}

// group are the processes of a service, held open.
type group struct {
	main     uint32
	programs []string
	held     []heldProcess
}

// gather takes in the processes of the service that run now. This program itself is never one: it may be the service's
// program, run by hand to replace it.
func (g *group) gather() error {
	all, err := snapshot()
	if err != nil {
		return err
	}
	for _, p := range serviceProcesses(all, g.main, g.programs) {
		if p.ID == windows.GetCurrentProcessId() || slices.ContainsFunc(g.held, func(h heldProcess) bool { return h.ID == p.ID }) {
			continue
		}
		if err := g.take(p); err != nil {
			return err
		}
	}
	return nil
}

// take opens one of the snapshot, unless it has ended since.
func (g *group) take(p process) error {
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

func (g *group) close() {
	for _, h := range g.held {
		_ = windows.CloseHandle(h.handle) // nothing was written
	}
}

// alive are those that still run.
func (g *group) alive() []heldProcess {
	var running []heldProcess
	for _, h := range g.held {
		if event, err := windows.WaitForSingleObject(h.handle, 0); err != nil || event != windows.WAIT_OBJECT_0 {
			running = append(running, h)
		}
	}
	return running
}

// kill ends those that still run, and what they started meanwhile. It returns when they are gone.
func (g *group) kill(ctx context.Context, limits serviceLimits) error {
	if err := g.gather(); err != nil {
		return err
	}
	for _, h := range g.alive() {
		// ERROR_ACCESS_DENIED is also what a process that is ending answers
		// (learn.microsoft.com/windows/win32/api/processthreadsapi/nf-processthreadsapi-terminateprocess).
		if err := windows.TerminateProcess(h.handle, 1); err != nil && !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			return fmt.Errorf("ending process %d (%s): %w", h.ID, h.Program, err)
		}
	}
	gone := func() (bool, error) { return len(g.alive()) == 0, nil }
	if err := poll(ctx, limits.killed, limits.poll, gone); err != nil {
		return fmt.Errorf("waiting for the end of killed processes: %w", err)
	}
	return nil
}

// programsOf are the names of the programs in a command line.
func programsOf(commandLine string) ([]string, error) {
	argv, err := windows.DecomposeCommandLine(commandLine)
	if err != nil || len(argv) == 0 {
		return nil, fmt.Errorf("reading command line %s: %w", commandLine, errors.Join(err, errNoCommand))
	}
	return servicePrograms(argv), nil
}

var errNoCommand = errors.New("there is no command in it")
