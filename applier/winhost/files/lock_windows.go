package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"wmco/applier"
	"wmco/applier/plan"
	"wmco/applier/winhost/wait"
	"wmco/bundle"
)

// lockedByte is the byte of the lock file that is locked. It is beyond the end of the text, so that others can read the
// text. A lock may be beyond the end of a file (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex).
const lockedByte = 1 << 20

// maxOwner is the longest name of an owner, in bytes.
const maxOwner = 4096

// Lock locks a byte of the lock file. Windows unlocks it when the process ends. The lock holds across sessions, such as
// those of a service and of an administrator over SSH. Lock creates the folder, and tries again while the last owner is
// removing the file.
func (f Files) Lock(ctx context.Context, owner string) (release func() error, err error) {
	var file *os.File
	var last error
	err = wait.PollUntil(ctx, lockLimit, removalPause, func() (bool, error) {
		file, last = f.lockOnce(ctx)
		return !errors.Is(last, errRemoval), nil
	})
	if err = errors.Join(last, err); err != nil {
		return nil, err
	}
	if err := writeOwner(file, owner); err != nil {
		return nil, errors.Join(fileError(plan.LockFile, "writing", err), file.Close())
	}
	return func() error { return unlockFile(file) }, nil
}

// errRemoval is why the lock file or its folder may not open.
var errRemoval = errors.New("its last owner may be removing it")

// removalErrors are the errors for files and folders that are removed and created again in between. Wine returns the
// last one if a descriptor grows between the call for its size and the call for it.
var removalErrors = []error{windows.ERROR_ACCESS_DENIED, windows.ERROR_SHARING_VIOLATION, windows.ERROR_INSUFFICIENT_BUFFER}

// removalPause is the time between two tries.
const removalPause = 5 * time.Millisecond

func (f Files) lockOnce(ctx context.Context) (*os.File, error) {
	var file *os.File
	err := f.ownStateFolder(ctx)
	if err == nil {
		file, err = openLock()
		err = fileError(plan.LockFile, "opening", err)
	}
	if isAbsent(err) || slices.ContainsFunc(removalErrors, func(e error) bool { return errors.Is(err, e) }) {
		return nil, fmt.Errorf("%w: %w", err, errRemoval)
	}
	if err != nil {
		return nil, err
	}
	err = lockFile(file)
	if err == nil && isRemoved(file) {
		err = errRemoval
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ErrNotTrusted is why nothing is locked in a folder that others can change.
var ErrNotTrusted = errors.New("others than SYSTEM and Administrators can change it")

// ownStateFolder makes the folder of the lock. One that exists keeps its access, so that what others left in it is not
// taken for ours.
func (f Files) ownStateFolder(ctx context.Context) error {
	infos, err := f.Stat(ctx, []string{plan.StateFolder})
	if err != nil {
		return err
	}
	if infos[0].Kind == plan.FileAbsent {
		if err := createFolder(plan.StateFolder, bundle.AccessAdmins); err != nil && !errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
			return fileError(plan.StateFolder, "making the folder", err)
		}
		if infos, err = f.Stat(ctx, []string{plan.StateFolder}); err != nil {
			return err
		}
	}
	if !infos[0].IsTrusted() {
		return fileError(plan.StateFolder, "locking", ErrNotTrusted)
	}
	return nil
}

func lockFile(file *os.File) error {
	const alone = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(file.Fd()), alone, 0, 1, 0, &windows.Overlapped{Offset: lockedByte})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return lockedError(file)
	}
	if err != nil {
		return fmt.Errorf("locking %s: %w", plan.LockFile, err)
	}
	return nil
}

// standardInfo is FILE_STANDARD_INFO (learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_standard_info).
type standardInfo struct {
	AllocationSize, EndOfFile int64
	NumberOfLinks             uint32
	DeletePending, Directory  bool
}

// isRemoved reports whether an open file has no name any more, or loses it when it is closed.
func isRemoved(file *os.File) bool {
	var info standardInfo
	err := windows.GetFileInformationByHandleEx(windows.Handle(file.Fd()), windows.FileStandardInfo,
		(*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return err == nil && (info.DeletePending || info.NumberOfLinks == 0)
}

// unlockFile unlocks before it closes: Windows unlocks a closed file with a delay
// (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex). If the folder has nothing else, unlock removes
// the lock file and the folder, so that a cleanup leaves nothing. It removes the file while it is locked, so that
// no program locks a file that is being removed.
func unlockFile(file *os.File) error {
	inside, err := os.ReadDir(plan.StateFolder)
	alone := err == nil && len(inside) == 1
	if alone {
		_ = deleteFile(plan.LockFile) // Windows removes it when it is closed
	}
	err = windows.UnlockFileEx(windows.Handle(file.Fd()), 0, 1, 0, &windows.Overlapped{Offset: lockedByte})
	err = errors.Join(err, file.Close())
	if alone {
		_ = os.Remove(plan.StateFolder) // it fails if another process has created a lock file since
	}
	return err
}

func openLock() (*os.File, error) {
	parent, err := holdFolder(plan.LockFile)
	if err != nil {
		return nil, err
	}
	defer parent.closeHandle()
	sa, err := securityAttributes(bundle.AccessAdmins, plan.FileRegular)
	if err != nil {
		return nil, err
	}
	name, err := rawPath(plan.LockFile)
	if err != nil {
		return nil, err
	}
	const rights = windows.GENERIC_READ | windows.GENERIC_WRITE
	handle, err := windows.CreateFile(name, rights, shareAll, sa, windows.OPEN_ALWAYS, windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(handle), plan.LockFile)
	if err := checkNoLink(handle, plan.LockFile); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func writeOwner(file *os.File, owner string) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(owner[:min(len(owner), maxOwner)]), 0)
	return err
}

func lockedError(file *os.File) error {
	owner, err := io.ReadAll(io.NewSectionReader(file, 0, maxOwner))
	if err != nil {
		return fileError(plan.LockFile, "reading", err)
	}
	return &applier.LockedError{Owner: string(owner)}
}
