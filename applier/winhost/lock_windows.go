package winhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/windows"

	"wmco/applier"
	"wmco/render/bundle"
)

// lockedByte is the byte of the lock file that is locked. It lies behind the text: others can read that, and a lock beyond
// the end of a file is allowed (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex).
const lockedByte = 1 << 20

// maxOwner is the longest text that is read of an owner.
const maxOwner = 4096

// Lock locks a byte of the lock file, which Windows unlocks when the process ends. That holds for all sessions: a service
// and an administrator over SSH see one file. The folder is made when it is not there.
func (h *Host) Lock(ctx context.Context, owner string) (release func() error, err error) {
	if err := h.MakeDirectory(ctx, applier.StateFolder, bundle.AccessAdmins); err != nil {
		return nil, err
	}
	file, err := openLock()
	if err != nil {
		return nil, fileError(applier.LockFile, "opening", err)
	}
	const alone = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(file.Fd()), alone, 0, 1, 0, &windows.Overlapped{Offset: lockedByte})
	switch {
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		err = lockedError(file)
	case err != nil:
		err = fmt.Errorf("locking %s: %w", applier.LockFile, err)
	default:
		err = fileError(applier.LockFile, "writing", writeOwner(file, owner))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error { return unlock(file) }, nil
}

// unlock does not leave it to the end of the file, which Windows may notice late
// (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex).
func unlock(file *os.File) error {
	err := windows.UnlockFileEx(windows.Handle(file.Fd()), 0, 1, 0, &windows.Overlapped{Offset: lockedByte})
	return errors.Join(err, file.Close())
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
