package network

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// RunAlone runs this program again, with the same arguments and the variable set, in a network of its own that has only
// 127.0.0.0/8, and returns its exit status. It needs the rights of root; without them it returns an error that is
// fs.ErrPermission.
func RunAlone(variable string) (int, error) {
	// The log is for the cache of go test, and two processes must not write it.
	args := slices.DeleteFunc(slices.Clone(os.Args), func(a string) bool { return strings.HasPrefix(a, "-test.testlogfile") })
	c := &exec.Cmd{
		Path: "/proc/self/exe", Args: args, Env: append(os.Environ(), variable+"=alone"), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL},
	}
	err := c.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode(), nil
	}
	return 0, err
}

// EnableAdapter enables a network adapter of the network of this thread, such as lo.
func EnableAdapter(adapter string) error {
	return RequestAdapter(adapter, func(socket int, r *unix.Ifreq) error {
		r.SetUint16(unix.IFF_UP)
		return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, r)
	})
}

// RequestAdapter makes a request about an adapter. The socket is of the network of the thread.
func RequestAdapter(adapter string, ask func(socket int, r *unix.Ifreq) error) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	r, err := unix.NewIfreq(adapter)
	if err == nil {
		err = ask(socket, r)
	}
	return errors.Join(err, unix.Close(socket))
}
