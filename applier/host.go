package applier

import (
	"context"
	"errors"
	"fmt"
	"io"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Host is a computer that a bundle can be applied to. Every operation can be repeated. An interrupted one leaves either
// the old or the new state, and perhaps a file whose name plan.IsLeftover recognizes. One operation has a gap: a
// running program is moved aside before the new one takes its place, so an interruption may leave neither at the path.
// All hosts pass the contract in internal/hostsim.
//
// Paths are Windows paths that bundle.CheckHostPath allows, compared without regard to case.
type Host interface {
	Reader
	Writer
	Services
	Machine
	// Lock makes owner the only one who changes the host, until release. A lock that another owner holds is a
	// *LockedError; the lock of a process that has ended is taken over. It makes plan.StateFolder if it needs it, and
	// refuses one that is not plan.FileInfo.IsTrusted.
	Lock(ctx context.Context, owner string) (release func() error, err error)
}

// Reader reads files.
type Reader interface {
	// Stat returns the entry at each of the paths, in their order.
	Stat(ctx context.Context, paths []string) ([]plan.FileInfo, error)
	// List returns the entries of a folder, by name, without those in its subfolders. A folder that does not exist is
	// empty.
	List(ctx context.Context, directory string) ([]plan.FileInfo, error)
	// Open reads a file. While it is open, the file can be replaced and removed. A file that does not exist is
	// fs.ErrNotExist, one that another program has locked a *FileError.
	Open(ctx context.Context, path string) (io.ReadCloser, error)
	// Free returns how many bytes can be written to drive C: before it is full.
	Free(ctx context.Context) (int64, error)
}

// Writer changes files. A lasting failure, such as a full disk, denied access or a locked file, is a *FileError.
type Writer interface {
	Names
	// Write replaces a file with what content returns up to io.EOF. It writes a new file, flushes it to the disk, and
	// then replaces the old one; when content fails, nothing has changed. The folder must exist. The file gets its
	// access at its creation, not afterwards. A read-only file is replaced, and so is a running program: that one is
	// moved aside.
	Write(ctx context.Context, path string, access bundle.Access, content io.Reader) error
	// MakeDirectory makes a folder; its parent must exist. A folder that exists gets the access, and Administrators own
	// it.
	MakeDirectory(ctx context.Context, path string, access bundle.Access) error
	// CopyTruncate copies a file that a program keeps open for appending, and empties it.
	CopyTruncate(ctx context.Context, path, to string) error
}

// Names changes which files and folders there are.
type Names interface {
	// Link gives a file a second name (a hard link), which keeps its contents when the first name is replaced or
	// removed. A second name that exists is replaced.
	Link(ctx context.Context, path, second string) error
	// Move gives a file, a link or a folder with everything in it another path on the drive, at which nothing may be.
	// Its owner and its access stay. A path that does not exist is fs.ErrNotExist. Windows does not move a folder in
	// which a program has a file open.
	Move(ctx context.Context, path, to string) error
	// Remove removes a file or an empty folder. A path that does not exist is no error. A running program is moved
	// aside.
	Remove(ctx context.Context, path string) error
}

// ServiceStates asks the service control manager.
type ServiceStates interface {
	// Services returns the state of each service, in the order of names.
	Services(ctx context.Context, names []string) ([]plan.ServiceState, error)
	// ServiceProcess returns the process id of a service, 0 if it does not run or does not exist. Unlike Services it
	// asks for the status alone, which services of Windows itself answer too.
	ServiceProcess(ctx context.Context, name string) (int, error)
}

// ServiceRuns starts and ends services.
type ServiceRuns interface {
	// StartService returns when the service runs, or a *ServiceError when it does not come up. A running service is no
	// error.
	StartService(ctx context.Context, name string) error
	// StopService returns when the service has stopped and its processes have ended; after a time limit they are
	// killed. Its processes are its own and those below it that its command line names, as a wrapper's: what containerd
	// starts for pods stays. A service that does not exist or does not run is no error. Services that depend on it must
	// have been stopped before.
	StopService(ctx context.Context, name string) error
	// RetireService removes the service that the calling process runs as. It is not started again, and has no name any
	// longer when the process has ended; the file of its program, which cannot be removed while it runs, is removed
	// when the host boots. A service that does not exist is no error.
	RetireService(ctx context.Context, name string) error
}

// Services is the service control manager.
type Services interface {
	ServiceStates
	ServiceRuns
	// PutService creates a service or gives it exactly this configuration. A running one keeps running.
	PutService(ctx context.Context, config plan.ServiceConfig) error
	// DeleteService removes a stopped service; its name is free when it returns. A service that does not exist is no
	// error.
	DeleteService(ctx context.Context, name string) error
}

// Machine is what belongs to the computer as a whole.
type Machine interface {
	// Settings returns each of the settings, named by Kind and Name, in their order.
	Settings(ctx context.Context, names []plan.Setting) ([]plan.Setting, error)
	// Set makes a setting Present with its Value, or absent.
	Set(ctx context.Context, setting plan.Setting) error
	// Probe checks once whether the probe succeeds. ProbeRunning is answered by Services.
	Probe(ctx context.Context, probe bundle.Probe) error
	// Facts returns the facts that the host reports.
	Facts(ctx context.Context) (bundle.Facts, error)
	// Reboot asks for a restart and returns at once. The reason is for the event log of Windows.
	Reboot(ctx context.Context, reason string) error
}

// LockedError means that another run is changing the host.
type LockedError struct {
	// Owner is the name that the other run gave.
	Owner string
}

func (e *LockedError) Error() string { return "locked by " + e.Owner }

// FileError is why a file could not be read, written or removed.
type FileError struct {
	Path   string
	Reason FileReason
	Err    error
}

// FileReason is why, in a form that programs may branch on.
type FileReason string

const (
	// FileDiskFull means that no space is left (ERROR_DISK_FULL, ENOSPC).
	FileDiskFull FileReason = "disk full"
	// FileDenied means that the security of the file or folder forbids it (ERROR_ACCESS_DENIED, EACCES).
	FileDenied FileReason = "access denied"
	// FileLocked means that another program has it open without sharing (ERROR_SHARING_VIOLATION).
	FileLocked FileReason = "locked by another program"
	// FileBroken is anything else.
	FileBroken FileReason = "input/output"
)

func (e *FileError) Error() string { return fmt.Sprintf("%s: %s: %v", e.Path, e.Reason, e.Err) }

func (e *FileError) Unwrap() error { return e.Err }

// Is reports whether target is ErrDiskFull and the disk was full.
func (e *FileError) Is(target error) bool { return target == ErrDiskFull && e.Reason == FileDiskFull }

// ErrDiskFull is each FileError because of a full disk, for errors.Is: it passes when there is room, and no bundle is
// the reason.
var ErrDiskFull = errors.New("the disk is full")

// ServiceError means that a service could not be configured, started or stopped, or did not become healthy.
type ServiceError struct {
	Name string
	// Doing is the failed operation, such as "starting"; empty for a service that did not become healthy.
	Doing string
	Err   error
}

func (e *ServiceError) Error() string {
	if e.Doing == "" {
		return fmt.Sprintf("service %s did not become healthy: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("%s service %s: %v", e.Doing, e.Name, e.Err)
}

func (e *ServiceError) Unwrap() error { return e.Err }

// BlamedService names the service whose log has the cause.
func (e *ServiceError) BlamedService() string { return e.Name }

// ErrNoSetting means that a kind of setting does not exist on this host, such as Defender's exclusions without
// Defender.
var ErrNoSetting = errors.New("this host has no such setting")
