package files

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"wmco/applier"
	"wmco/applier/winhost/wait"
	"wmco/bundle"
)

// Limits of the wait for a file that another program has open or is deleting. Virus scanners open new files for a short
// time, and programs, which they read as a whole, for longer: tens of seconds for one of 100 MB on a busy host.
const (
	lockLimit    = time.Second
	programLimit = 30 * time.Second
	lockPause    = 50 * time.Millisecond
)

// lockLimitOf returns how long a change of these paths waits.
func lockLimitOf(paths ...string) time.Duration {
	for _, path := range paths {
		if p := bundle.FoldPath(path); strings.HasSuffix(p, ".exe") || strings.HasSuffix(p, ".dll") {
			return programLimit
		}
	}
	return lockLimit
}

// retryLocked tries again while another program has the file open or is deleting it.
func retryLocked(ctx context.Context, limit time.Duration, try func() error) error {
	var last error
	err := wait.PollUntil(ctx, limit, lockPause, func() (bool, error) {
		last = try()
		return reasonOf(last) != applier.FileLocked, nil
	})
	if errors.Is(err, wait.ErrTooLong) {
		return last
	}
	return errors.Join(last, err)
}

// ErrBeingDeleted is why a path cannot be used that was deleted while a program still has it open.
var ErrBeingDeleted = errors.New("it is being deleted, and another program still has it open")

// errAccessDenied is ERROR_ACCESS_DENIED (learn.microsoft.com/windows/win32/debug/system-error-codes--0-499-).
const errAccessDenied = syscall.Errno(5)

// explainDenied adds ErrBeingDeleted to an error of a change where the attributes of the path were denied too, with
// this error. Windows denies every access to a file between its deletion and the end of its last handle
// (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-deletefilew). The attributes of any other file are readable
// for whoever may list its folder, whatever its security is
// (learn.microsoft.com/windows/win32/fileio/file-security-and-access-rights).
func explainDenied(err, attributes error) error {
	if errors.Is(err, errAccessDenied) && errors.Is(attributes, errAccessDenied) {
		return fmt.Errorf("%w: %w", ErrBeingDeleted, err)
	}
	return err
}
