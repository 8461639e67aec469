package files

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"wmco/applier"
)

// reasons maps system error codes to why a file cannot be written or removed
// (learn.microsoft.com/windows/win32/debug/system-error-codes).
var reasons = map[syscall.Errno]applier.FileReason{
	5:    applier.FileDenied,   // ERROR_ACCESS_DENIED
	19:   applier.FileDenied,   // ERROR_WRITE_PROTECT
	32:   applier.FileLocked,   // ERROR_SHARING_VIOLATION
	33:   applier.FileLocked,   // ERROR_LOCK_VIOLATION
	1224: applier.FileLocked,   // ERROR_USER_MAPPED_FILE
	39:   applier.FileDiskFull, // ERROR_HANDLE_DISK_FULL
	112:  applier.FileDiskFull, // ERROR_DISK_FULL
	1295: applier.FileDiskFull, // ERROR_DISK_QUOTA_EXCEEDED
}

// ErrLink is why nothing is read or written through a link or a junction.
var ErrLink = errors.New("links and junctions are not followed")

// reasonOf returns why a call for a file failed.
func reasonOf(err error) applier.FileReason {
	if errors.Is(err, ErrBeingDeleted) {
		return applier.FileLocked
	}
	var code syscall.Errno
	if errors.As(err, &code) && reasons[code] != "" {
		return reasons[code]
	}
	return applier.FileBroken
}

// fileError returns a *applier.FileError with what was done to the path, nil for nil.
func fileError(path, doing string, err error) error {
	if err == nil {
		return nil
	}
	var known *applier.FileError
	if errors.As(err, &known) {
		return err
	}
	return &applier.FileError{Path: path, Reason: reasonOf(err), Err: fmt.Errorf("%s: %w", doing, err)}
}

// isAbsent reports whether the error is that the path or its folder does not exist.
func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
