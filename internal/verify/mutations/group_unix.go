//go:build unix

package mutations

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// endAsGroup has a command interrupted with everything that it has started: go test does not pass a signal on to the
// tests.
func endAsGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
}

// lock keeps a second run away from the copy, until the file is closed or the process ends.
func lock(path string) (*os.File, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another run uses %s: %w", path, err), f.Close())
	}
	return f, nil
}
