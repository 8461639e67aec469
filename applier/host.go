package applier

import (
	"context"
	"errors"
	"fmt"
	"io"

	"wmco/applier/plan"
	"wmco/bundle"
)

// Host is a machine that a bundle can be applied to. Every operation can run twice and leaves, when it is cut, either the
// old or the new state; what else may stay behind is a file with a name that Leftover recognizes. One thing has a gap: a
// program that runs is moved aside before the new one takes its place, so a cut may leave neither there. The contract that
// all hosts pass is applier/hosttest.
//
// Paths are Windows paths that bundle.CheckPath allows, compared without regard to case.
type Host interface {
	Reader
	Writer
	Services
	Machine
	// Lock makes owner the only one who changes the host, until release. Another one's lock is a *LockedError; that of a
	// process that has ended is taken over.
	Lock(ctx context.Context, owner string) (release func() error, err error)
}

// Reader is what a host tells of its files.
type Reader interface {
	// Stat tells what stands at each of the paths, in their order.
	Stat(ctx context.Context, paths []string) ([]plan.FileInfo, error)
	// List tells what stands in a folder, by name, without what is in folders in it. A folder that is not there is empty.
	List(ctx context.Context, directory string) ([]plan.FileInfo, error)
	// Open reads a file. While it is open the file can be replaced and removed. A file that is not there is fs.ErrNotExist.
	Open(ctx context.Context, path string) (io.ReadCloser, error)
}

// Writer is what a host lets be done to its files. What fails for good, such as a full disk, a denied access or a file that
// somebody keeps locked, is a *FileError.
type Writer interface {
	// Write makes the file hold what content yields up to io.EOF. It is written beside, flushed to the disk, and then takes
	// the place of the old one; when content fails, nothing has changed. The folder must be there. It gets the access at its
	// creation, not afterwards. A read-only file is replaced, and so is a program that runs: that one is moved aside.
	Write(ctx context.Context, path string, access bundle.Access, content io.Reader) error
	// MakeDirectory makes a folder in one that is there. One that is there already gets the access.
	MakeDirectory(ctx context.Context, path string, access bundle.Access) error
	// Link gives a file a second name (a hard link), by which its contents stay when the first is replaced or removed. A
	// second name that is there already is replaced.
	Link(ctx context.Context, path, second string) error
	// Remove removes a file or an empty folder. What is not there is no error. A program that runs is moved aside.
	Remove(ctx context.Context, path string) error
	// CopyTruncate copies a file that a program keeps open for appending to another name and empties it.
	CopyTruncate(ctx context.Context, path, to string) error
}

// Services is the service control manager.
type Services interface {
	// Services tells what each of the services is, in the order of names.
	Services(ctx context.Context, names []string) ([]plan.ServiceState, error)
	// PutService creates a service or gives it exactly this configuration. A running one goes on as it is.
	PutService(ctx context.Context, config plan.ServiceConfig) error
	// DeleteService removes a stopped service; its name is free when it returns. What is not there is no error.
	DeleteService(ctx context.Context, name string) error
	// StartService returns when the service runs, or a *ServiceError when it does not come up. One that runs is no error.
	StartService(ctx context.Context, name string) error
	// StopService returns when the service has stopped and its processes are gone; after a limit they are killed. Its
	// processes are its own and those below it that its command line names, as a wrapper's: what containerd starts for pods
	// stays. A service that is not there or does not run is no error. Services that depend on it must have been stopped before.
	StopService(ctx context.Context, name string) error
}

// Machine is what belongs to the machine as a whole.
type Machine interface {
	// Settings tells what each of the settings, named by Kind and Name, is on the machine, in their order.
	Settings(ctx context.Context, names []plan.Setting) ([]plan.Setting, error)
	// Set makes a setting Present with its Value, or absent.
	Set(ctx context.Context, setting plan.Setting) error
	// Probe asks once whether the probe holds. ProbeRunning is not asked of the machine but of Services.
	Probe(ctx context.Context, probe bundle.Probe) error
	// Facts tells what the machine says of itself.
	Facts(ctx context.Context) (bundle.Facts, error)
	// Reboot asks for a restart of the machine and returns at once. The reason is for the machine's event log.
	Reboot(ctx context.Context, reason string) error
}

// LockedError says that somebody else is changing the host.
type LockedError struct {
	// Owner is what the other one called itself.
	Owner string
}

func (e *LockedError) Error() string { return "locked by " + e.Owner }

// FileError says why a file could not be written or removed.
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
	// FileLocked means that somebody has it open and shares it with nobody (ERROR_SHARING_VIOLATION).
	FileLocked FileReason = "locked by another program"
	// FileBroken is anything else.
	FileBroken FileReason = "input/output"
)

func (e *FileError) Error() string { return fmt.Sprintf("%s: %s: %v", e.Path, e.Reason, e.Err) }

func (e *FileError) Unwrap() error { return e.Err }

// ServiceError says that a service did not do as it was told.
type ServiceError struct {
	Name string
	// Doing is what was asked of it, such as "starting".
	Doing string
	Err   error
}

func (e *ServiceError) Error() string {
	return fmt.Sprintf("%s service %s: %v", e.Doing, e.Name, e.Err)
}

func (e *ServiceError) Unwrap() error { return e.Err }

// ErrNoSetting says that a kind of setting does not exist on this host, such as Defender's exclusions without Defender.
var ErrNoSetting = errors.New("this machine has no such setting")
