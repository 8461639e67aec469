package services

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"wmco/applier/winhost/wait"
)

// Errors of StartService that pass by themselves (learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-startservicew
// and learn.microsoft.com/windows/win32/debug/system-error-codes).
const (
	// errSharingViolation is ERROR_SHARING_VIOLATION: a scanner has the program open.
	errSharingViolation = syscall.Errno(32)
	// errDatabaseLocked is ERROR_SERVICE_DATABASE_LOCKED: another program changes the service control manager.
	errDatabaseLocked = syscall.Errno(1055)
	// errRequestTimeout is ERROR_SERVICE_REQUEST_TIMEOUT: the program did not connect within 30 seconds, as on a host
	// that is busy, or ended before it did.
	errRequestTimeout = syscall.Errno(1053)
)

// Limits of the tries to start a service. One that ends before it connects ends each time: it gets one more try.
const (
	startLimit       = 90 * time.Second
	startPause       = time.Second
	unansweredStarts = 2
)

// retryStart starts a service, and tries again after an error that passes.
func retryStart(ctx context.Context, start func() error) error {
	var last error
	unanswered := 0
	err := wait.PollUntil(ctx, startLimit, startPause, func() (bool, error) {
		last = start()
		if errors.Is(last, errRequestTimeout) {
			unanswered++
			return unanswered == unansweredStarts, nil
		}
		return !slices.ContainsFunc([]error{errSharingViolation, errDatabaseLocked}, func(passes error) bool { return errors.Is(last, passes) }), nil
	})
	if errors.Is(err, wait.ErrTooLong) {
		return last
	}
	return errors.Join(last, err)
}
