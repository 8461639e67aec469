package files

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"wmco/applier"
)

func TestReasonOfAFileError(t *testing.T) {
	tests := map[string]struct {
		err  error
		want applier.FileReason
	}{
		"a full disk":                 {syscall.Errno(112), applier.FileDiskFull},
		"a full disk during a write":  {syscall.Errno(39), applier.FileDiskFull},
		"a quota":                     {syscall.Errno(1295), applier.FileDiskFull},
		"access denied":               {syscall.Errno(5), applier.FileDenied},
		"a write-protected disk":      {syscall.Errno(19), applier.FileDenied},
		"a sharing violation":         {fmt.Errorf("moving: %w", syscall.Errno(32)), applier.FileLocked},
		"a locked region":             {syscall.Errno(33), applier.FileLocked},
		"a mapped file":               {syscall.Errno(1224), applier.FileLocked},
		"the first of several errors": {errors.Join(syscall.Errno(32), syscall.Errno(5)), applier.FileLocked},
		"any other code":              {syscall.Errno(87), applier.FileBroken},
		"an error without a code":     {ErrLink, applier.FileBroken},
		"a file error already":        {&applier.FileError{Path: "x", Reason: applier.FileDenied, Err: ErrLink}, applier.FileDenied},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got *applier.FileError
			if !errors.As(fileError(`C:\x`, "writing", tt.err), &got) || got.Reason != tt.want {
				t.Errorf("got %v, want reason %q", got, tt.want)
			}
		})
	}
	if err := fileError(`C:\x`, "writing", nil); err != nil {
		t.Error(err)
	}
	if !isAbsent(syscall.ENOENT) || isAbsent(syscall.EACCES) {
		t.Error("an error of a missing file, or of a denied one, is taken for the other")
	}
}
