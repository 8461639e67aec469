package winetest

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Network is what the programs of a machine see of a network.
type Network string

const (
	// NetworkOfHost is that of this machine, shared with everything else on it.
	NetworkOfHost Network = "host"
	// NetworkAlone has nothing but 127.0.0.0/8: programs on several machines listen on the same ports.
	NetworkAlone Network = "alone"
)

// option is that of unshare, if any.
func (n Network) option() string {
	if n == NetworkAlone {
		return "--net"
	}
	return ""
}

// connect turns on the loopback of a network that the kernel has just made.
func (m *machine) connect() error {
	if m.network != NetworkAlone {
		return nil
	}
	done := make(chan error)
	go func() {
		// The thread is of the other network afterwards, and ends with this function.
		runtime.LockOSThread()
		done <- loopbackUp("/proc/" + m.id + "/ns/net")
	}()
	if err := <-done; err != nil {
		return fmt.Errorf("turning on the loopback of a machine: %w", err)
	}
	return nil
}

func loopbackUp(namespace string) error {
	file, err := os.Open(namespace)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	request, err := unix.NewIfreq("lo")
	if err == nil {
		request.SetUint16(unix.IFF_UP)
		err = unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
	}
	return errors.Join(err, unix.Close(socket))
}
