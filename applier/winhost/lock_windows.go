package winhost

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
	"wmco/bundle"
)

// lockedByte is the byte of the lock file that is locked. It lies behind the text: others can read that, and a lock beyond
// the end of a file is allowed (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex).
const lockedByte = 1 << 20

// maxOwner is the longest text that is read of an owner.
const maxOwner = 4096

// Lock locks a byte of the lock file, which Windows unlocks when the process ends. That holds for all sessions: a service
// and an administrator over SSH see one file. The folder is made when it is not there. A file that its last owner takes
// along is waited for.
func (h *Host) Lock(ctx context.Context, owner string) (release func() error, err error) {
	var file *os.File
	var last error
	err = poll(ctx, lockPatience, goingPause, func() (bool, error) {
		file, last = h.lockOnce(ctx)
		return !errors.Is(last, errGoing), nil
	})
	if err = errors.Join(last, err); err != nil {
		return nil, err
	}
	if err := writeOwner(file, owner); err != nil {
		return nil, errors.Join(fileError(applier.LockFile, "writing", err), file.Close())
	}
	return func() error { return unlock(file) }, nil
}

// errGoing says what may be wrong with a lock file or a folder that cannot be opened.
var errGoing = errors.New("its last owner may be removing it")

// goingErrors are those with which files and folders answer that go and come again. The last one is seen under Wine: a call
// asks how much there is to read, and then there is more.
var goingErrors = []error{windows.ERROR_ACCESS_DENIED, windows.ERROR_SHARING_VIOLATION, windows.ERROR_INSUFFICIENT_BUFFER}

// goingPause is for that to end.
const goingPause = 5 * time.Millisecond

func (h *Host) lockOnce(ctx context.Context) (*os.File, error) {
	var file *os.File
	err := h.MakeDirectory(ctx, applier.StateFolder, bundle.AccessAdmins)
	if err == nil {
		file, err = openLock()
		err = fileError(applier.LockFile, "opening", err)
	}
	if absent(err) || slices.ContainsFunc(goingErrors, func(e error) bool { return errors.Is(err, e) }) {
		return nil, fmt.Errorf("%w: %w", err, errGoing)
	}
	if err != nil {
		return nil, err
	}
	err = lock(file)
	if err == nil && removed(file) {
		err = errGoing
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func lock(file *os.File) error {
	const alone = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(file.Fd()), alone, 0, 1, 0, &windows.Overlapped{Offset: lockedByte})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return lockedError(file)
	}
	if err != nil {
		return fmt.Errorf("locking %s: %w", applier.LockFile, err)
	}
	return nil
}

// standardInfo is FILE_STANDARD_INFO (learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_standard_info).
type standardInfo struct {
	AllocationSize, EndOfFile int64
	NumberOfLinks             uint32
	DeletePending, Directory  bool
}

// removed tells whether a file that is open has no name any more, or loses it when it is closed.
func removed(file *os.File) bool {
	var info standardInfo
	err := windows.GetFileInformationByHandleEx(windows.Handle(file.Fd()), windows.FileStandardInfo, (*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return err == nil && (info.DeletePending || info.NumberOfLinks == 0)
}

// unlock does not leave it to the end of the file, which Windows may notice late
// (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex). A lock file that is all there is goes, and its
// folder too: so a cleanup leaves nothing. That happens while it is locked, so that nobody who locks it has one that goes.
func unlock(file *os.File) error {
	inside, err := os.ReadDir(applier.StateFolder)
	last := err == nil && len(inside) == 1
	if last {
		_ = deleteFile(applier.LockFile) // it is gone when it is closed
	}
	err = windows.UnlockFileEx(windows.Handle(file.Fd()), 0, 1, 0, &windows.Overlapped{Offset: lockedByte})
	err = errors.Join(err, file.Close())
	if last {
		_ = os.Remove(applier.StateFolder) // not if somebody has locked it since
	}
	return err
}

func openLock() (*os.File, error) {
	parent, err := hold(applier.LockFile)
	if err != nil {
		return nil, err
	}
	defer parent.close()
	sa, err := securityAttributes(bundle.AccessAdmins, applier.FileRegular)
	if err != nil {
		return nil, err
	}
	name, err := raw(applier.LockFile)
	if err != nil {
		return nil, err
	}
	const rights = windows.GENERIC_READ | windows.GENERIC_WRITE
	handle, err := windows.CreateFile(name, rights, shareAll, sa, windows.OPEN_ALWAYS, windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(handle), applier.LockFile)
	if err := straight(handle, applier.LockFile); err != nil {
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
		return fileError(applier.LockFile, "reading", err)
	}
	return &applier.LockedError{Owner: string(owner)}
}
