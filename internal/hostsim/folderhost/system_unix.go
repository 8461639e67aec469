//go:build unix

package folderhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"wmco/applier/plan"
	"wmco/bundle"
)

// fileID is made of device and inode.
func fileID(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d-%d", s.Dev, s.Ino)
}

// accessOf returns the access that a mode stands for. A read-only file has the same access as a writable one.
func accessOf(info fs.FileInfo) bundle.Access {
	modes, mode := fileModes, info.Mode().Perm()|0o200
	if info.IsDir() {
		modes, mode = folderModes, info.Mode().Perm()
	}
	for access, m := range modes {
		if m == mode {
			return access
		}
	}
	return plan.AccessOther
}

// tryLock locks an open file and reports whether it did. It does not wait.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
