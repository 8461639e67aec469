package files

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"wmco/applier"
)

// TestAFileThatAnotherProgramHasOpen waits longer for executables, which scanners read as a whole, than for other files.
func TestAFileThatAnotherProgramHasOpen(t *testing.T) {
	sharing, lock, denied := syscall.Errno(32), syscall.Errno(33), syscall.Errno(5)
	tests := map[string]struct {
		paths []string
		err   error
		held  time.Duration
		want  bool
	}{
		"a program for 20 seconds":                      {[]string{`C:\k\kubelet.exe`}, sharing, 20 * time.Second, true},
		"a program for a minute":                        {[]string{`C:\k\kubelet.exe`}, sharing, time.Minute, false},
		"a library for 20 seconds":                      {[]string{`C:\k\x.DLL`}, sharing, 20 * time.Second, true},
		"a region of a program for 20 seconds":          {[]string{`C:\k\KUBELET.EXE`}, lock, 20 * time.Second, true},
		"the second name of a program for 20 seconds":   {[]string{`C:\k\kubelet.exe`, `C:\ProgramData\wmco\kept`}, sharing, 20 * time.Second, true},
		"a deleted program whose handle ends in time":   {[]string{`C:\k\kubelet.exe`}, explainDenied(denied, denied), 20 * time.Second, true},
		"another file for half a second":                {[]string{`C:\k\kubelet.conf`}, sharing, time.Second / 2, true},
		"another file for 20 seconds":                   {[]string{`C:\k\kubelet.conf`}, sharing, 20 * time.Second, false},
		"a program whose security denies it, at once":   {[]string{`C:\k\kubelet.exe`}, explainDenied(denied, nil), time.Second / 2, false},
		"a program that cannot be written for its disk": {[]string{`C:\k\kubelet.exe`}, syscall.Errno(112), time.Second / 2, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				err := retryLocked(t.Context(), lockLimitOf(tt.paths...), func() error {
					if time.Since(begun) < tt.held {
						return tt.err
					}
					return nil
				})
				if (err == nil) != tt.want || err != nil && !errors.Is(err, tt.err) {
					t.Errorf("after %s: %v", time.Since(begun), err)
				}
			})
		})
	}
}

func TestAStopEndsTheWaitForAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		begun := time.Now()
		err := retryLocked(ctx, programLimit, func() error { return syscall.Errno(32) })
		if passed := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || reasonOf(err) != applier.FileLocked || passed != 5*time.Second {
			t.Errorf("after %s: %v", passed, err)
		}
	})
}
